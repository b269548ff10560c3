"""The store: the model states of all layers on disk, versioned, checksummed, a step wholly in or not at all."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from catchment.host.optimizer.store import commit as records
from catchment.host.optimizer.store.assembly import assemble
from catchment.host.optimizer.store.commit import Commit, Digests, LayerVersion, ModelState
from catchment.host.optimizer.store.devices import StoreOptions, open_devices
from catchment.host.optimizer.store.errors import StoreError, before_the_first_commit
from catchment.host.optimizer.store.geometry import DIGESTS, Geometry, Section
from catchment.host.optimizer.store.manifest import Manifest
from catchment.host.optimizer.store.planes import Planes
from catchment.host.optimizer.store.transfer import Memory, Transfer, as_type, page_aligned

if TYPE_CHECKING:
    from catchment.host.optimizer.store.devices import OpenDevice

Weights = Callable[[int], torch.Tensor]
"""layer index -> its initial weights, any shape, the layer's elements in order."""


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes on all devices: of one plane, and the planes that there are."""

    plane_bytes: int
    planes: int


class Store:
    """An open store. Reads and writes of layers run in parallel; `commit` waits for nothing that it does not cover.

    A layer's new version is written beside the old one (`place`, `write`, `put`) and counts from the next `commit` on.
    Any error of a write or commit ends the use of this object; opening the store again finds the last commit.
    """

    def __init__(
        self, devices: Sequence[OpenDevice], manifest: Manifest, options: StoreOptions, *, read_only: bool = False
    ) -> None:
        """Use `create` or `open`."""
        from catchment.host import _optimizer  # noqa: PLC0415

        self._devices = devices
        self._manifest = manifest
        self._lane = _optimizer.Lane
        self.geometry: Geometry = manifest.geometry
        self.updater = _optimizer.Updater(options.threads, options.kernels)
        self._lock = threading.RLock()
        self._pending: dict[int, LayerVersion] = {}
        self._failure: StoreError | None = None
        self._read_only = read_only
        self._closed = False
        self._commit = Commit(0, ModelState(()), {})
        self._planes = Planes(devices, manifest)

    # ---- making and opening --------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        places: Sequence[str | Path],
        geometry: Geometry,
        weights: Weights,
        options: StoreOptions | None = None,
        *,
        overwrite: bool = False,
        complete: Callable[[Self], None] = lambda _: None,
    ) -> Self:
        """A new store on `places` (folders, files or block devices) with moments of zero.

        Args:
            places, geometry, weights, options: where, what, its weights, how.
            overwrite: whatever the places hold is lost, once there is room for the new store.
            complete: puts in what else belongs there; until it has returned there is no store to open.

        Raises:
            StoreError: kind ``busy``: a place holds a store, or anything else, and `overwrite` is false; ``full``;
                ``device``.
        """
        options = StoreOptions() if options is None else options
        if len(places) != geometry.devices:
            raise StoreError(
                f"{len(places)} places for {geometry.devices} devices", kind="argument", hint="name one a device"
            )
        with ExitStack() as exits:
            devices = open_devices(places, options, create=True, exits=exits)
            for device in devices:
                if not overwrite and (what := device.content()):
                    raise StoreError(
                        f"there is {what} already", kind="busy", path=device.path, hint="name another place, or "
                        "overwrite what is there: with --overwrite, in a program overwrite=True",
                    )  # fmt: skip
            identity = uuid.uuid4().hex
            for device in devices:
                device.file.grow(Manifest(identity, device.index, geometry).plane_offset(device.index, 2))
            with before_the_first_commit():
                for device in devices:
                    device.erase_manifest()
                store = cls(devices, Manifest(identity, 0, geometry), options)
                store._write_first(weights)
                complete(store)
                for device in devices:
                    device.write(0, Manifest(identity, device.index, geometry).encode())
                store._sync()
            exits.pop_all()
            return store

    @classmethod
    def open(
        cls, places: Sequence[str | Path], options: StoreOptions | None = None, *, read_only: bool = False
    ) -> Self:
        """The store on `places`, in any order, at its last commit.

        `read_only`: nothing is written, so the places may be, too, and others may read at the same time.

        Raises:
            StoreError: kind ``missing``, ``version``, ``mismatch``, ``corrupt``, ``busy`` or ``device``.
        """
        options = StoreOptions() if options is None else options
        with ExitStack() as exits:
            found = open_devices(places, options, read_only=read_only, exits=exits)
            devices, manifest = assemble(found)
            store = cls(devices, manifest, options, read_only=read_only)
            store._load()
            exits.pop_all()
            return store

    def check_open(self) -> None:
        """Make sure that this object may still be used.

        Raises:
            StoreError: kind ``closed``, or what ended its use.
        """
        with self._lock:
            self._check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what is in flight and unlock; what was not committed is not in. May be called twice."""
        with self._lock:
            if not self._closed:
                self._closed = True
                for device in self._devices:
                    device.close()

    # ---- what is there -------------------------------------------------------------------------

    @property
    def state(self) -> ModelState:
        """The state as of the last commit."""
        return self._commit.state

    @property
    def generation(self) -> int:
        """Number of the last commit."""
        return self._commit.generation

    @property
    def identity(self) -> str:
        """Random name of the store, the same on all of its devices."""
        return self._manifest.identity

    @property
    def snapshots(self) -> Mapping[str, ModelState]:
        """The snapshots by name, oldest first."""
        return MappingProxyType(dict(self._commit.snapshots))

    def room_for_snapshots(self, state: ModelState) -> int:
        """How many snapshots like `state` a commit record has room for, all that there are included."""
        return records.snapshots_that_fit(state, self._manifest.commit_bytes)

    @property
    def limits(self) -> tuple[str, ...]:
        """Sentences about what this machine does not permit; empty when all is as it should be."""
        return tuple(limit for device in self._devices for limit in device.limits)

    @property
    def space(self) -> Space:
        """What it takes on disk."""
        plane = sum(self.geometry.plane_bytes(device.index) for device in self._devices)
        return Space(plane, self._planes.count)

    def stats(self) -> dict[str, dict[str, Any]]:
        """Counters of each device since it was opened, by path."""
        return {device.path: dict(device.native.stats()) for device in self._devices}

    def version(self, layer: int) -> LayerVersion:
        """The newest version of a layer, committed or not."""
        with self._lock:
            return self._pending.get(layer) or self._commit.state.layers[layer]

    # ---- reading and writing -------------------------------------------------------------------

    def read(self, version: LayerVersion, layer: int, section: Section, memory: Memory) -> Transfer:
        """Start to read a section into `memory` (page-aligned, the section's bytes with padding)."""
        self._check()
        lane = self._lane.PARAMETER_READ if section is self.geometry.sent else self._lane.STATE_READ
        transfer = Transfer()
        for device, offset, part, what in self._parts(version.plane, layer, section, memory):
            transfer.add(device.native.read(lane, offset, part), f"read of {what}", device.path)
        return transfer

    def digests(self, layer: int, section: Section, memory: Memory) -> list[int]:
        """The digests of what `memory` holds, a device each."""
        return self.updater.digests(memory, section.size, list(self.geometry.shard_units(layer)))

    def verify(self, version: LayerVersion, layer: int, section: Section, digests: Sequence[int]) -> None:
        """Compare with what was committed.

        Raises:
            StoreError: kind ``corrupt``, with the layer, the section, the device and the place on it.
        """
        for shard in self.geometry.shards(layer, section):
            expected = int(version.digests[shard.device, section.column])
            if int(digests[shard.device]) != expected:
                offset = self._manifest.plane_offset(shard.device, version.plane) + shard.offset
                raise StoreError(
                    f"layer {layer} ({self.geometry.table[layer].name}), {section.name}: the checksum at byte {offset} "
                    f"is {int(digests[shard.device]):#010x}, it was written with {expected:#010x}", kind="corrupt",
                    path=self._devices[shard.device].path, hint="restore a snapshot, or the device from a copy",
                )  # fmt: skip

    def place(self, layer: int, *, undo: bool = False) -> int:
        """A plane in which the next version of `layer` may be written: nothing that counts is there.

        `undo`: what was put since the last commit counts too, so that it can be put again.

        Raises:
            StoreError: kind ``full``: there is none, and no space to make one.
        """
        with self._lock:
            self._check_writable()
            pending = self._pending.get(layer)
            needed = self._commit.used_planes(layer)
            if pending is not None and not undo and pending.plane not in needed:
                return pending.plane
            return self._planes.take(self._taken(layer))

    def spare_plane(self) -> int:
        """A plane for what need not outlive this object, with room for a section of every layer.

        Raises:
            StoreError: kind ``full``: there is none, and no space to make one.
        """
        with self._lock:
            self._check_writable()
            return self._planes.take_spare([self._taken(layer) for layer in range(len(self.geometry.table))])

    def write(self, plane: int, layer: int, section: Section, memory: Memory) -> Transfer:
        """Start to write a section; `memory` must stay as it is until the transfer is done."""
        self._check_writable()
        transfer = Transfer()
        for device, offset, part, what in self._parts(plane, layer, section, memory):
            transfer.add(device.native.write(offset, part), f"write of {what}", device.path)
        return transfer

    def put(self, layer: int, version: LayerVersion) -> None:
        """`version` has been written, or is an earlier one again: the next commit covers it."""
        with self._lock:
            self._pending[layer] = version

    def commit(
        self,
        trained: int,
        notes: Mapping[str, Any] | None = None,
        *,
        snapshot: str | None = None,
        drop: Collection[str] = (),
    ) -> None:
        """Make everything that was put since the last commit count, all at once.

        Args:
            trained: training passes so far.
            notes: the trainer's own, JSON.
            snapshot: also keep the state under this name; one of that name is replaced.
            drop: snapshots to forget.

        Raises:
            StoreError: it did not happen; the previous commit stands.
        """
        with self._lock:
            layers = tuple(self._pending.get(i) or old for i, old in enumerate(self._commit.state.layers))
            state = ModelState(layers, trained, MappingProxyType(dict(notes or {})))
            kept = {name: old for name, old in self._commit.snapshots.items() if name not in {*drop, snapshot}}
            if snapshot is not None:
                kept[_usable_name(snapshot)] = state
            self._record(Commit(self.generation + 1, state, kept))
            self._pending.clear()

    def fail(self, error: StoreError) -> None:
        """Take no more writes: what is pending must not be committed by mistake."""
        with self._lock:
            self._failure = self._failure or error

    # ---- snapshots -----------------------------------------------------------------------------

    def take_snapshot(self, name: str) -> None:
        """Keep the committed state by name, as it is; no data moves. A snapshot of that name is replaced.

        Raises:
            StoreError: kind ``argument``: the name is empty, or cannot be printed.
        """
        with self._lock:
            kept = {old: state for old, state in self._commit.snapshots.items() if old != name}
            kept[_usable_name(name)] = self._commit.state  # the newest is the last
            self._record(replace(self._commit, generation=self.generation + 1, snapshots=kept))

    def drop_snapshot(self, name: str) -> None:
        """Forget a snapshot; its planes serve later steps."""
        with self._lock:
            kept = dict(self._commit.snapshots)
            if kept.pop(name, None) is None:
                raise self._no_snapshot(name)
            self._record(replace(self._commit, generation=self.generation + 1, snapshots=kept))

    def restore_snapshot(self, name: str) -> None:
        """Make a snapshot the present state; no data moves."""
        with self._lock:
            if name not in self._commit.snapshots:
                raise self._no_snapshot(name)
            self._pending.clear()
            self._record(replace(self._commit, generation=self.generation + 1, state=self._commit.snapshots[name]))

    def _no_snapshot(self, name: str) -> StoreError:
        there = ", ".join(self._commit.snapshots) or "none"
        return StoreError(f"there is no snapshot {name!r}", kind="argument", hint=f"there are: {there}")

    # ---- inside --------------------------------------------------------------------------------

    def _taken(self, layer: int) -> set[int]:
        pending = {self._pending[layer].plane} if layer in self._pending else set()
        return self._commit.used_planes(layer) | pending

    def _parts(
        self, plane: int, layer: int, section: Section, memory: Memory
    ) -> list[tuple[OpenDevice, int, Memory, str]]:
        unit = memory.size // self.geometry.units(layer)
        what = f"layer {layer} ({self.geometry.table[layer].name}), {section.name}"
        parts = []
        for shard in self.geometry.shards(layer, section):
            offset = self._manifest.plane_offset(shard.device, plane) + shard.offset
            part = memory[shard.first * unit : (shard.first + shard.units) * unit]
            parts.append((self._devices[shard.device], offset, part, what))
        return parts

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._closed:
            raise StoreError("the store was closed", kind="closed")

    def _check_writable(self) -> None:
        self._check()
        if self._read_only:
            path = self._devices[0].path
            raise StoreError("it was opened to be read", kind="argument", path=path, hint="open it without read_only")

    def _sync(self) -> None:
        transfer = Transfer()
        for device in self._devices:
            transfer.add(device.native.sync(), "sync", device.path)
        transfer.wait()

    def _record(self, commit: Commit) -> None:
        self._check_writable()
        try:
            raw = records.encode(commit, self._manifest.commit_bytes, self.identity)
            self._sync()  # the data first
            first = self._devices[0]
            first.write(self._manifest.commit_offsets[commit.generation % 2], raw)
            sealed = Transfer()
            sealed.add(first.native.sync(), "sync of the commit record", first.path)
            sealed.wait()
        except StoreError as error:
            self._failure = error
            raise
        self._commit = commit

    def _load(self) -> None:
        first, room = self._devices[0], self._manifest.commit_bytes
        found = [records.decode(first.read(at, room), self.identity) for at in self._manifest.commit_offsets]
        whole = [commit for commit in found if commit is not None]
        if not whole:
            raise StoreError(
                "no commit record is whole", kind="corrupt", path=first.path, hint="restore the device from a copy, or "
                "import the model again",
            )  # fmt: skip
        self._commit = max(whole, key=lambda commit: commit.generation)
        if not all(map(self._fits, (self._commit.state, *self._commit.snapshots.values()))):
            raise StoreError(
                "the commit record is of another model", kind="corrupt", path=first.path, hint="restore the device "
                "from a copy, or import the model again",
            )  # fmt: skip

    def _fits(self, state: ModelState) -> bool:
        """Whether a state has the layers, tensors and devices of this store."""
        tensors = [len(layer.tensors) for layer in self.geometry.table]
        return [len(version.steps) for version in state.layers] == tensors and all(
            len(version.digests) == self.geometry.devices for version in state.layers
        )

    def _write_first(self, weights: Weights) -> None:
        versions = []
        for layer in self.geometry.table:
            scratch = {
                section.name: page_aligned(self.geometry.section_bytes(layer.index, section))
                for section in self.geometry.sections
            }
            flat = weights(layer.index).detach().reshape(-1).to(torch.float32)
            if flat.numel() != layer.numel:
                raise StoreError(
                    f"layer {layer.name}: {flat.numel()} weights, the table says {layer.numel}", kind="mismatch"
                )
            fill(scratch, flat)
            versions.append(self.write_layer(0, layer.index, scratch, (0,) * len(layer.tensors)))
        self._record(Commit(1, ModelState(tuple(versions)), {}))

    def write_layer(
        self, plane: int, layer: int, sections: Mapping[str, Memory], steps: tuple[int, ...], notes: Any = None
    ) -> LayerVersion:
        """Write all sections of a layer and wait; gives the version to `put`."""
        digests: Digests = np.zeros((self.geometry.devices, DIGESTS), np.uint32)
        transfers = []
        for section in self.geometry.sections:
            memory = sections[section.name]
            digests[:, section.column] = self.digests(layer, section, memory)
            transfers.append(self.write(plane, layer, section, memory))
        for transfer in transfers:
            transfer.wait()
        return LayerVersion(plane, digests, steps, notes)


def _usable_name(snapshot: str) -> str:
    if not snapshot.strip() or not snapshot.isprintable():
        raise StoreError(f"a snapshot cannot have the name {snapshot!r}", kind="argument", hint="give letters")
    return snapshot


def fill(sections: Mapping[str, Memory], master: torch.Tensor) -> None:
    """Put `master` (flat fp32) into the sections of master weights and of parameters."""
    torch.from_numpy(as_type(sections["master"], np.float32))[: master.numel()].copy_(master)
    if "parameters" in sections:
        torch.from_numpy(as_type(sections["parameters"], np.int16)).view(torch.bfloat16)[: master.numel()].copy_(master)
