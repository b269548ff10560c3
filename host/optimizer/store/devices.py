"""Opening the devices of a store: direct I/O and io_uring where the machine permits them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from catchment.host.given_numbers import is_real, is_whole
from catchment.host.optimizer.store.errors import StoreError, of_errno
from catchment.host.optimizer.store.files import DeviceFile, file_of
from catchment.host.optimizer.store.geometry import PAGE
from catchment.host.optimizer.store.transfer import Transfer, page_aligned

if TYPE_CHECKING:
    from catchment.host import _optimizer

_LOG = logging.getLogger(__name__)
_LARGEST_CHUNK = 1 << 30
ENGINES = ("auto", "uring", "blocking")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How a store uses the machine; none of it changes what is on disk.

    Attributes:
        engine: ``uring``, ``blocking`` (one call at a time), or ``auto``: io_uring where it is permitted.
        direct: bypass the page cache where the file system can.
        chunk: bytes of one read or write at most. depth: of them in flight on a device.
        rate: bytes per second of each device at most, 0: no limit (to imitate slower devices).
        threads: for updates and checksums. kernels: "avx512", "avx2", "base", or the best one.
        faults: what is to go wrong, for tests.
    """

    engine: str = "auto"
    direct: bool = True
    chunk: int = 1 << 20
    depth: int = 16
    rate: float = 0.0
    threads: int = 2
    kernels: str = ""
    faults: _optimizer.Faults | None = None

    def __post_init__(self) -> None:
        checks = (
            (self.engine in ENGINES, f"engine {self.engine!r}: one of {', '.join(ENGINES)}"),
            (isinstance(self.direct, bool), f"direct {self.direct!r}: True or False"),
            (
                is_whole(self.chunk, PAGE, _LARGEST_CHUNK) and self.chunk % PAGE == 0,
                f"chunk {self.chunk!r}: whole pages of {PAGE} bytes, {_LARGEST_CHUNK} at most",
            ),
            (is_whole(self.depth, 1, 1024), f"depth {self.depth!r}: 1 to 1024"),
            (is_real(self.rate) and self.rate >= 0, f"rate {self.rate!r}: 0 or more bytes per second"),
            (is_whole(self.threads, 1, 1024), f"threads {self.threads!r}: 1 to 1024"),
            (isinstance(self.kernels, str), f"kernels {self.kernels!r}: a name, or empty for the best"),
        )
        wrong = [text for right, text in checks if not right]
        if wrong:
            raise StoreError("; ".join(wrong), kind="argument")


class OpenDevice:
    """A device's file and its I/O thread. `index`: its place in the store; `limits`: what is not permitted here."""

    def __init__(self, file: DeviceFile, index: int, options: StoreOptions) -> None:
        self.file = file
        self.path = file.path
        self.index = index
        self.limits: list[str] = []
        if options.direct and not file.direct:
            self.limits.append(f"{self.path}: no direct I/O on this file system; the page cache takes part")
        self.native = self._start(options)
        for limit in self.limits:
            _LOG.warning(limit)

    def _start(self, options: StoreOptions) -> _optimizer.Device:
        from catchment.host import _optimizer  # noqa: PLC0415  the error for a missing build belongs to the first use

        def start(uring: bool) -> _optimizer.Device:
            return _optimizer.Device(
                self.file.descriptor,
                uring=uring,
                chunk=options.chunk,
                depth=options.depth,
                rate=options.rate,
                index=self.index,
                faults=options.faults,
            )

        if options.engine == "blocking":
            return start(uring=False)
        try:
            return start(uring=True)
        except OSError as error:
            if options.engine == "uring":
                raise of_errno(error.errno or 0, "io_uring", self.path) from error
            self.limits.append(f"{self.path}: io_uring is not permitted ({error.strerror}); one call at a time instead")
            return start(uring=False)

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes (whole pages) from `offset`, fewer at the end of the file."""
        memory = page_aligned(length)
        from catchment.host import _optimizer  # noqa: PLC0415

        room = max(0, min(length, self.file.size - offset) // PAGE * PAGE)
        if room == 0:
            return b""
        reading = Transfer()
        ticket = self.native.read(_optimizer.Lane.PARAMETER_READ, offset, memory[:room])
        reading.add(ticket, f"read at byte {offset}", self.path)
        reading.wait()
        return memory[:room].tobytes()

    def write(self, offset: int, raw: bytes) -> None:
        """Write `raw` (whole pages) and wait."""
        memory = page_aligned(len(raw))
        memory[: len(raw)] = np.frombuffer(raw, np.uint8)
        writing = Transfer()
        writing.add(self.native.write(offset, memory), f"write at byte {offset}", self.path)
        writing.wait()

    def content(self) -> str:
        """What the file begins like: a store, of any version, or something else; nothing where it is new or erased."""
        from catchment.host.optimizer.store import manifest  # noqa: PLC0415

        first = self.read(0, PAGE)
        if first[: len(manifest.MAGIC)] == manifest.MAGIC:
            return "a store"
        return "something else" if any(first) or 0 < self.file.size < PAGE else ""

    def erase_manifest(self) -> None:
        """Erase the manifest: until a new one is written there is no store here."""
        if self.file.size >= PAGE:
            self.write(0, bytes(PAGE))

    def close(self) -> None:
        """Finish what is in flight, then unlock."""
        self.native.close()
        self.file.close()


def open_devices(
    places: Sequence[str | Path],
    options: StoreOptions,
    *,
    create: bool = False,
    read_only: bool = False,
    exits: ExitStack,
) -> list[OpenDevice]:
    """Open all places, in their order; `exits` closes them."""
    if not places:
        raise StoreError("no place was named", kind="argument", hint="name folders, files or block devices")
    paths = [file_of(place).resolve() for place in places]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise StoreError("is named twice", kind="argument", path=str(twice), hint="name each device once")
    devices = []
    for index, place in enumerate(places):
        file = DeviceFile(place, create=create, read_only=read_only, direct=options.direct)
        with ExitStack() as opening:
            opening.callback(file.close)
            device = OpenDevice(file, index, options)
            opening.pop_all()
        exits.callback(device.close)
        devices.append(device)
    return devices
