"""The parameters that a proxy keeps: sums of gradients update them, and they are what clients pull (COARSE, IV-B)."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from catchment.host.proxy.channel import Flag
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.group import ProxyGroup
from catchment.host.proxy.numbers import dequantized
from catchment.host.proxy.ring import Lanes
from catchment.host.proxy.rule import rule_of
from catchment.host.proxy.snapshots import Part, SnapshotFolder
from catchment.host.proxy.storage import Bytes, Snapshot, Storage
from catchment.host.proxy.tensors import Shard, TensorTable

Floats = npt.NDArray[np.float32]
_COUNT = np.dtype("<u8")


class Parameters:
    """Weights and moments of every shard, and how often it was updated; all proxies make the same of the same sums.

    Different threads may update different shards. A shard whose sum is not finite stays as it is in that step.
    """

    def __init__(self, group: ProxyGroup, number: int, table: TensorTable, fail: Callable[[ProxyError], None]) -> None:
        """Go on from the last snapshot that all proxies have; else begin with zeros until `begin`.

        Args:
            group: with a rule.
            number: of this proxy.
            table: the clients'.
            fail: called when a snapshot cannot be saved, by a thread of this.

        Raises:
            ProxyError: the rule is none, or there is a snapshot that cannot be used.
        """
        from catchment.host import _optimizer  # noqa: PLC0415  a build is needed where parameters are

        assert group.rule is not None, "proxies without a rule keep no parameters"
        self._rule = rule_of(group.rule)
        self._group, self._number, self._table, self._fail = group, number, table, fail
        self._sections = ("master", "first", "second")[: 1 + self._rule.kind.moments]
        sizes = [self._size(shard) for shard in table.shards]
        self._storage = Storage(sizes)
        self._updater = _optimizer.Updater(1)
        self._updating = threading.Lock()
        self._plan = zlib.crc32(json.dumps([table.facts(), group.rule], sort_keys=True).encode())
        self._folder = SnapshotFolder(group.snapshots) if group.snapshots is not None else None
        found = self._folder.load(number, len(group.addresses), self._plan) if self._folder is not None else None
        self._first = None if found is None else found[0].step
        if found is not None:
            if [len(value) for value in found[1]] != sizes:
                raise ProxyError(
                    f"{group.snapshots} has values of other sizes than this group's: give it another folder"
                )
            for shard, value in enumerate(found[1]):
                self._storage.load(shard, value, found[0].step)
        self._saved = threading.Condition()
        self._saving = 0
        self._saver: threading.Thread | None = None

    @property
    def first(self) -> int | None:
        """The step that is next; None: clients have to bring parameters."""
        return self._first

    def begin(self, shard: int, values: Floats) -> None:
        """Take a shard's weights; its moments are zeros."""
        value = np.zeros(self._size(self._table.shards[shard]), np.uint8)
        value[: values.nbytes] = values.view(np.uint8)
        self._storage.load(shard, value, 0)

    def weights(self, shard: int) -> Floats:
        """The present weights, as a copy."""
        found = self._table.shards[shard]
        weights: Floats = self._storage.read(shard)[: 4 * (found.stop - found.start)].view(np.float32)
        return weights

    def update(self, shard: int, step: int, total: Lanes, flags: int) -> Floats:
        """The weights that step number `step` makes with a sum of gradients.

        Raises:
            ProxyError: the sums' snapshot cannot be begun.
        """
        value = self._storage.read(shard)
        if not flags & Flag.NOT_FINITE:
            self._apply(shard, value, total)
        every = self._group.snapshot_every
        if self._folder is not None and every and (step + 1) % every == 0:
            self._want(step + 1)
        self._storage.write(shard, value)
        found = self._table.shards[shard]
        weights: Floats = value[: 4 * (found.stop - found.start)].view(np.float32)
        return weights

    def close(self) -> None:
        """Finish the snapshot that has all values; one that has not is given up."""
        self._storage.close()
        saver = self._saver
        if saver is not None:
            saver.join()

    def _size(self, shard: Shard) -> int:
        return 4 * len(self._sections) * (shard.stop - shard.start) + _COUNT.itemsize

    def _apply(self, shard: int, value: Bytes, total: Lanes) -> None:
        from catchment.host.optimizer.store import UNIT, page_aligned  # noqa: PLC0415  as above

        exponent, numel = self._table.tensors[self._table.shards[shard].tensor].exponent, len(total)
        gradient = np.empty(numel, np.float32)
        if exponent is None:
            gradient[:] = total
        else:
            dequantized(total, exponent, self._group.clients, gradient)
        count = value[-_COUNT.itemsize :].view(_COUNT)
        count[0] += 1
        own = {name: value[4 * numel * at : 4 * numel * (at + 1)] for at, name in enumerate(self._sections)}
        work = {name: page_aligned(4 * UNIT * -(-numel // UNIT)) for name in self._sections}
        for name, section in own.items():
            work[name][: len(section)] = section
        with self._updating:
            self._updater.update(
                parameters=None, master=work["master"], first=work["first"], second=work.get("second"),
                bf16_moments=False, gradient=gradient.view(np.uint8), shard_units=[-(-numel // UNIT)], offsets=[0],
                counts=[numel], scalars=np.array([self._rule.scalars(int(count[0]), self._rule.lr, 1.0)], np.float32),
            )  # fmt: skip
        for name, section in own.items():
            section[:] = work[name][: len(section)]

    def _want(self, version: int) -> None:
        """Begin the snapshot of a step, if no other shard has; waits for the save before it: at most one is kept."""
        with self._saved:
            if version <= self._saving:
                return
            self._saved.wait_for(lambda: self._saver is None or version <= self._saving)
            if version <= self._saving:
                return
            self._saving = version
            snapshot = self._storage.want(version)
            self._saver = threading.Thread(target=self._save, args=(snapshot,), daemon=True)
            self._saver.start()

    def _save(self, snapshot: Snapshot) -> None:
        assert self._folder is not None, "nobody else wants a snapshot"
        try:
            if self._storage.wait(snapshot):
                crc = 0
                for block in snapshot.blocks():
                    crc = zlib.crc32(block, crc)
                sizes = tuple(self._size(shard) for shard in self._table.shards)
                part = Part(snapshot.version, self._plan, sizes, crc)
                self._folder.save(self._number, part, snapshot.blocks(), len(self._group.addresses))
        except ProxyError as error:
            self._fail(error)
        finally:
            self._storage.release(snapshot)
            with self._saved:
                self._saver = None
                self._saved.notify_all()
