"""What a proxy stores: values in blocks that a snapshot shares with the present until the present changes them.

A value's version counts the steps that it has had. A snapshot names a version, takes each value in the moment when it
has it, and so is of one step, whatever order values change in and however far some are ahead (COARSE, IV-A, corrected).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from catchment.host.proxy.errors import ProxyError

BLOCK = 1 << 16
"""Bytes of a block; a value's last one may be shorter."""
Bytes = npt.NDArray[np.uint8]


@dataclass(slots=True)
class _Block:
    """Bytes, and how many tables have them: that of the present, and those of snapshots."""

    data: Bytes
    refs: int = 1


@dataclass(slots=True)
class _Value:
    """The present version of a value."""

    blocks: list[_Block]
    version: int = 0


@dataclass(slots=True)
class Snapshot:
    """All values as they were after `version` steps; `Storage` fills it. Its blocks stay until `Storage.release`."""

    version: int
    taken: dict[int, list[_Block]] = field(default_factory=dict)

    def blocks(self) -> Iterator[memoryview]:
        """All bytes, value by value; they do not change until the snapshot is released."""
        for key in sorted(self.taken):
            yield from (block.data.data for block in self.taken[key])


class Storage:
    """Values by number; any thread may call it."""

    def __init__(self, sizes: Sequence[int]) -> None:
        """Have a value of zeros for each size in bytes."""
        self._values = [
            _Value([_Block(np.zeros(min(BLOCK, size - at), np.uint8)) for at in range(0, size, BLOCK)])
            for size in sizes
        ]  # fmt: skip
        self._changed = threading.Condition()
        self._wanted: Snapshot | None = None
        self._shared = 0
        self._closed = False

    @property
    def shared_bytes(self) -> int:
        """Bytes that a snapshot has and the present no longer: what the snapshot costs."""
        return self._shared

    def load(self, key: int, data: Bytes, version: int) -> None:
        """Begin with a value of that version; no snapshot is wanted yet."""
        with self._changed:
            self._values[key].version = version
            self._put(key, data)

    def read(self, key: int) -> Bytes:
        """A value's present bytes, as a copy."""
        with self._changed:
            return np.concatenate([block.data for block in self._values[key].blocks])

    def write(self, key: int, data: Bytes) -> None:
        """Make a value's next version; blocks that a snapshot has are replaced, the others are written in place."""
        with self._changed:
            self._values[key].version += 1
            self._put(key, data)
            self._take(key)

    def want(self, version: int) -> Snapshot:
        """Begin a snapshot, which is complete when every value has had that version (`wait`).

        Raises:
            ProxyError: a value is beyond it, so that the snapshot would be of mixed steps; or another one is wanted.
        """
        with self._changed:
            beyond = [(key, value.version) for key, value in enumerate(self._values) if value.version > version]
            if beyond:
                raise ProxyError(f"no snapshot of step {version}: value {beyond[0][0]} is at step {beyond[0][1]}")
            if self._wanted is not None:
                raise ProxyError(f"no snapshot of step {version}: that of step {self._wanted.version} is not released")
            self._wanted = Snapshot(version)
            for key in range(len(self._values)):
                self._take(key)
            return self._wanted

    def wait(self, snapshot: Snapshot) -> bool:
        """Wait until a snapshot has all values, or nothing is written any more; whether it has all."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(snapshot.taken) == len(self._values))
            return len(snapshot.taken) == len(self._values)

    def close(self) -> None:
        """Say that nothing is written any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def release(self, snapshot: Snapshot) -> None:
        """Give up a snapshot's blocks; the next one may be wanted."""
        with self._changed:
            for blocks in snapshot.taken.values():
                for block in blocks:
                    block.refs -= 1
                    if not block.refs:
                        self._shared -= len(block.data)
            snapshot.taken = {}
            self._wanted = None

    def _put(self, key: int, data: Bytes) -> None:
        blocks = self._values[key].blocks
        if len(data) != sum(len(block.data) for block in blocks):
            raise ProxyError(f"value {key} has {sum(len(b.data) for b in blocks)} bytes, {len(data)} are given")
        for number, block in enumerate(blocks):
            part = data[BLOCK * number : BLOCK * (number + 1)]
            if block.refs == 1:
                block.data[:] = part
                continue
            block.refs -= 1
            self._shared += len(part)
            blocks[number] = _Block(part.copy())

    def _take(self, key: int) -> None:
        """Have the wanted snapshot share a value that has just the version."""
        wanted, value = self._wanted, self._values[key]
        if wanted is None or value.version != wanted.version:
            return
        for block in value.blocks:
            block.refs += 1
        wanted.taken[key] = list(value.blocks)
        self._changed.notify_all()
