"""The out-of-core optimizer node (LuWu, section 3.3, Figure 9): model states on disk, line rate in both directions.

A task is one layer in one half of a pass. It owns its buffers and goes round the steps, each of which has a thread
and a resource of its own:

    admit    buffers from the arena; parameters read        (disk, first priority; a layer that is still on its way to
             the disk is copied instead, so that the next forward need not wait for the writes)
    push     checksum, header, push; then, in a backward: pulls posted, states read (disk, second priority)
    release  nothing comes back: pushed, buffers free       (network)
    update   pushed, gradients here, states here: update    (processor); states written (disk, third priority);
             the layer is ready for the next pass
    retire   written: buffers free; after the last layer of a pass the step is committed

Everything in flight holds buffers of one arena. When it is full nothing is admitted, no pulls are posted, the
endpoint's credit stands still, and the workers wait: that is the back-pressure.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from catchment.host.given_numbers import is_whole
from catchment.host.layers import ParamHeader, Pass, Timeline, TrainingError, TransferPort, WireType, pack_header
from catchment.host.optimizer.exponents import MANY, LayerExponents, largest_notes
from catchment.host.optimizer.layer_update import update_layer
from catchment.host.optimizer.node import PassRecord
from catchment.host.optimizer.options import NodeOptions
from catchment.host.optimizer.store import LayerVersion, Memory, ModelState, Precision, Store, StoreError, page_aligned
from catchment.host.optimizer.store.group_commit import GroupFolder, snapshot_name, snapshot_step
from catchment.host.optimizer.streaming.arena import Arena
from catchment.host.optimizer.streaming.clipping import Clip
from catchment.host.optimizer.streaming.kept import KeptGradients
from catchment.host.optimizer.streaming.queues import Channel, Stages
from catchment.host.optimizer.streaming.step_control import StepControl
from catchment.host.optimizer.streaming.task import Buffers, Reading, Task, Ticket, Work, schedule
from catchment.host.optimizer.torch_options import pack_groups, torch_groups

if TYPE_CHECKING:
    from catchment.host.optimizer.store import Transfer


@dataclass(frozen=True, slots=True)
class StreamingOptions:
    """How an out-of-core node streams.

    Attributes:
        arena: bytes for all buffers; 0: three times what the largest layer takes.
        commit_every: training passes between two commits; what a crash may cost. The last one is always committed.
        snapshot_every: training passes between two snapshots (an epoch); 0: none. keep: the last so many are kept, as
            many as the store's commit record has room for (`Store.room_for_snapshots`, about nine of a large model).
        clip: clipping of the gradients by their global norm, None: they are used as they are.
        group: folder that all optimizer nodes of the training see, where there are several: which step all of them
            have (store/group_commit.py). Every snapshot, and the state at the end of a run, is then one of the group's.

    Raises:
        TrainingError: a value is of another type, or cannot be.
    """

    arena: int = 0
    commit_every: int = 1
    snapshot_every: int = 0
    keep: int = 2
    clip: Clip | None = None
    group: Path | None = None

    def __post_init__(self) -> None:
        least = ((self.arena, 0), (self.commit_every, 1), (self.snapshot_every, 0), (self.keep, 1))
        if not all(is_whole(number, first) for number, first in least):
            raise TrainingError(f"{self}: commit_every and keep from 1 on, the others from 0 on")
        if not isinstance(self.clip, Clip | None):
            raise TrainingError(f"clip {self.clip!r}: give a Clip, or None")
        if not isinstance(self.group, Path | None):
            raise TrainingError(f"group {self.group!r}: give the Path of a folder, or None")


class StreamingNode:
    """Serves the parameters of a store and updates them from the workers' sums."""

    def __init__(
        self,
        port: TransferPort,
        store: Store,
        options: NodeOptions,
        streaming: StreamingOptions | None = None,
        *,
        timeline: Timeline | None = None,
        on_pass: Callable[[PassRecord], None] | None = None,
    ) -> None:
        """Go on from the store's last commit. `on_pass` hears of a pass when its last layer is updated, or sent.

        Raises:
            TrainingError: the store keeps another kind of optimizer or other types, the arena is too small, or the
                store has no room for as many snapshots as are to be kept.
        """
        geometry = store.geometry
        wanted = Precision.BF16 if options.wire is WireType.BF16 else Precision.FP32
        if geometry.parameters is not wanted:
            raise TrainingError(f"the store has {geometry.parameters} parameters, the wire takes {wanted}: import anew")
        if geometry.rule is not options.rule.kind:
            raise TrainingError(f"the store has the moments of {geometry.rule}, the optimizer is {options.rule}")
        self._rules = options.rules(geometry.table)
        self._streaming = StreamingOptions() if streaming is None else streaming
        home = geometry.table.home
        if home.roots > 1 and self._streaming.clip is not None:
            raise TrainingError(
                f"clipping by the global norm with {home.roots} optimizer nodes: each sees a part of the gradients; "
                "leave clip out, or train with one"
            )
        self._control = StepControl(options, self._streaming.clip, store.state.notes)
        self._check_room(store, options)
        self._group = None if self._streaming.group is None else GroupFolder(self._streaming.group)
        if self._group is not None:
            self._group.begin(store)
        self._port = port
        self._store = store
        self._geometry = geometry
        self._table = geometry.table
        self._options = options
        self._timeline = Timeline() if timeline is None else timeline
        self._on_pass = on_pass
        largest = max(Buffers.size(geometry, layer.index, Work.BACKWARD) for layer in self._table)
        size = self._streaming.arena or 3 * largest
        if size < largest:
            raise TrainingError(f"an arena of {size} bytes: one layer needs {largest} of them")
        self.arena = Arena(size)
        self._exponents = [
            LayerExponents(layer, options.workers, options.exponents, store.version(layer.index).notes)
            for layer in self._table
        ]
        self._change = threading.Condition()
        self._ready = [store.state.trained] * len(self._table)
        self._committed = store.state.trained
        self._written = [store.state.trained] * len(self._table)
        self._normed = store.state.trained  # training passes whose norm is known
        self._kept = KeptGradients(store) if self._control.norm.exact else None
        self._fresh: dict[int, Memory] = {}  # parameters of layers that are updated, but not yet written
        self._set_up()

    def _check_room(self, store: Store, options: NodeOptions) -> None:
        """Refuse to begin what a later commit would have no room for."""
        keep = self._streaming.keep
        if not self._streaming.snapshot_every and self._streaming.group is None:
            return
        layers = tuple(
            LayerVersion(MANY, version.digests, (MANY,) * len(layer.tensors), largest_notes(layer, options.exponents))
            for layer, version in zip(store.geometry.table, store.state.layers, strict=True)
        )
        groups = pack_groups(store.geometry.table, torch_groups(self._rules, store.state.trained))
        notes = {"norm": -sys.float_info.max, "loss_scale": [sys.float_info.max, MANY, MANY], "groups": groups}
        room = store.room_for_snapshots(ModelState(layers, MANY, notes))
        others = sum(snapshot_step(name) is None for name in store.snapshots)
        if keep + others > room:
            besides = f" besides {others} that have names of their own" if others else ""
            todo = f"give keep 1..{room - others}" if room > others else "drop some, or shorten the exponents' history"
            raise TrainingError(
                f"keep {keep} snapshots{besides}: the store's commit record has room for {room} of this model: {todo}"
            )

    def _set_up(self) -> None:
        """Have queues and steps for one run: they end with it."""
        self._stages = Stages(self._stop)
        self._to_push: Channel[Task] = Channel()
        self._to_release: Channel[Task] = Channel()
        self._to_update: Channel[Task] = Channel()
        self._to_retire: Channel[Task] = Channel()

    def weights(self, layer: int) -> torch.Tensor:
        """The master weights of a layer, read from the store (flat fp32)."""
        master = next(section for section in self._geometry.state if section.name == "master")
        memory = page_aligned(self._geometry.section_bytes(layer, master))
        version = self._store.version(layer)
        self._store.read(version, layer, master, memory).wait()
        self._store.verify(version, layer, master, self._store.digests(layer, master, memory))
        return torch.from_numpy(memory.view(np.float32))[: self._table[layer].numel]

    def exponents(self, layer: int) -> tuple[int, ...]:
        """The exponents of a layer's next push."""
        return self._exponents[layer].current()

    def run(self, passes: Sequence[bool | Pass]) -> None:
        """Run all passes: True is a training pass, False a forward-only one. Returns when all is on disk.

        May be called again, but after an error, which it then raises once more.

        Raises:
            StoreError: a device failed, or a checksum did not fit; the last commit stands.
            TrainingError: gradients are not finite. EndpointError: the network failed.
        """
        if self._stages.failure is not None:
            raise self._stages.failure
        self._set_up()
        first = self._committed
        tickets = schedule(len(self._table), passes, first, self._control.norm.exact)
        stages = self._stages
        stages.start("admit", lambda: self._admit(tickets))
        stages.start("push", lambda: self._each(self._to_push, self._push, self._to_release, self._to_update))
        stages.start("release", lambda: self._each(self._to_release, self._release))
        stages.start("update", lambda: self._each(self._to_update, self._update, self._to_retire))
        last = first + sum(Pass(each) is Pass.TRAIN for each in passes)
        stages.start("retire", lambda: self._each(self._to_retire, lambda task: self._retire(task, last)))
        try:
            stages.join()
        except StoreError as error:
            self._store.fail(error)
            raise

    def _stop(self) -> None:
        self.arena.close()
        for channel in (self._to_push, self._to_release, self._to_update, self._to_retire):
            channel.fail()
        with self._change:
            self._change.notify_all()

    @staticmethod
    def _each(source: Channel[Task], step: Callable[[Task], None], *following: Channel[Task]) -> None:
        while (task := source.get()) is not None:
            step(task)
        for channel in following:
            channel.close()

    # ---- the steps -----------------------------------------------------------------------------

    def _admit(self, tickets: Iterator[Ticket]) -> None:
        for ticket in tickets:
            region = self.arena.take(Buffers.size(self._geometry, ticket.layer, ticket.work))
            if region is None or not self._await(lambda t=ticket: self._may_begin(t)):  # type: ignore[misc]
                return
            buffers = Buffers(region, self._geometry, ticket.layer, ticket.work)
            # An update changes the parameters in place: those of tensors that it leaves alone must be there.
            needed = ticket.work.sends or "parameters" in buffers.sections
            there = not needed or self._copy_fresh(ticket, buffers)
            self._to_push.put(Task(ticket, buffers, None if there else self._read_sent(ticket, buffers)))
        self._to_push.close()

    def _may_begin(self, ticket: Ticket) -> bool:
        """What it needs of earlier tasks is there: parameters in memory at least, states on disk, the norm."""
        if ticket.work is Work.APPLY and self._normed <= ticket.trained:
            return False
        done = self._written if ticket.work.updates else self._ready
        return done[ticket.layer] >= ticket.trained

    def _copy_fresh(self, ticket: Ticket, buffers: Buffers) -> bool:
        """The layer was updated, and is on its way to the disk: its parameters need not be read."""
        with self._change:
            fresh = self._fresh.get(ticket.layer)
            if fresh is None:
                return False
            buffers.parameters[:] = fresh
            return True

    def _read_sent(self, ticket: Ticket, buffers: Buffers) -> Reading:
        version = self._store.version(ticket.layer)
        return Reading(version, self._store.read(version, ticket.layer, self._geometry.sent, buffers.parameters))

    def _push(self, task: Task) -> None:
        ticket, buffers, sent = task.ticket, task.buffers, self._geometry.sent
        if task.reading is not None:
            task.reading.transfer.wait()
            self._note_span("read", ticket.layer, task.reading.transfer)
            digests = self._store.digests(ticket.layer, sent, buffers.parameters)
            self._store.verify(task.reading.version, ticket.layer, sent, digests)
        if ticket.work.sends:
            self._send(task)
        if ticket.work in (Work.FORWARD, Work.RESEND):
            self._to_release.put(task)
            return
        if ticket.work.gathers:
            gradients = buffers.gradients.view(np.float32)
            task.sums = tuple(self._port.pull(gradients[tensor.span]) for tensor in self._table[ticket.layer].tensors)
        if ticket.work.updates:
            version = self._store.version(ticket.layer)
            task.states = [
                Reading(version, self._store.read(version, ticket.layer, section, buffers.sections[section.name]))
                for section in self._geometry.state
            ]
        if self._kept is not None and ticket.work is Work.APPLY:
            task.kept = self._kept.read(ticket.layer, buffers.gradients)
        self._to_update.put(task)

    def _send(self, task: Task) -> None:
        ticket, buffers = task.ticket, task.buffers
        scale = self._control.loss_scale
        exponents = self._exponents[ticket.layer].current(scale.shift)
        accumulate = ticket.kind is Pass.ACCUMULATE
        header = ParamHeader(
            ticket.layer,
            ticket.number,
            ticket.work.phase,
            exponents,
            ticket.last_pass,
            scale.current,
            accumulate,
            ticket.trained,
        )
        packed = pack_header(header, self._table, self._options.wire)
        task.asked = time.monotonic()
        task.pushed = self._port.push(buffers.message(packed, self._table, ticket.layer, self._options.wire))

    def _release(self, task: Task) -> None:
        self._await_pushed(task)
        self.arena.give_back(task.buffers.region)
        ticket = task.ticket
        ends = ticket.work is (Work.RESEND if ticket.kind is Pass.ACCUMULATE else Work.FORWARD)
        if ends and ticket.closes and ticket.kind is not Pass.TRAIN and self._on_pass is not None:
            self._on_pass(PassRecord(ticket.number, train=False))

    def _update(self, task: Task) -> None:
        ticket = task.ticket
        if ticket.work.gathers:
            self._await_pushed(task)
            for completion in task.sums:
                completion.wait()
            self._timeline.add("pull", ticket.layer, task.asked, task.asked + task.sums[-1].latency)
        for reading in task.states:
            reading.transfer.wait()
            self._note_span("read", ticket.layer, reading.transfer)
        every = self._streaming.commit_every
        if not self._await(lambda: self._committed >= ticket.trained // every * every):
            return
        with self._timeline.span("update", ticket.layer):
            usable = self._usable(task)
            if ticket.work.updates:
                self._apply(task, usable)
        if ticket.work.updates:
            with self._change:
                self._fresh[ticket.layer] = task.buffers.sections[self._geometry.sent.name]
            if ticket.closes:
                record, task.undo = self._control.close(ticket)
                if self._on_pass is not None:
                    self._on_pass(record)
            if not task.undo:
                self._mark_ready(ticket)
        self._to_retire.put(task)

    def _mark_ready(self, ticket: Ticket) -> None:
        with self._change:
            self._ready[ticket.layer] = ticket.trained + 1
            self._change.notify_all()

    def _usable(self, task: Task) -> list[int]:
        """The numbers of the tensors whose gradients may be used; their squares are added up."""
        ticket, layer = task.ticket, self._table[task.ticket.layer]
        if task.kept is not None and self._kept is not None:
            return self._kept.arrived(ticket.layer, task.kept, task.buffers.gradients)
        control = self._control
        control.begin()
        usable = self._exponents[ticket.layer].observe(task.sums, control.loss_scale.shift)
        if control.norm.wanted:
            for number in usable:
                span = layer.tensors[number].span
                gradients = task.buffers.gradients[4 * span.start : 4 * span.stop]
                control.norm.add(self._store.updater.squares(gradients, control.mean))
        if self._kept is not None:
            task.written = [self._kept.write(ticket.layer, task.buffers.gradients, usable)]
        control.gathered(ticket, [tensor.name for i, tensor in enumerate(layer.tensors) if i not in usable])
        task.overflowed = control.overflowed
        return usable

    def _apply(self, task: Task, usable: Sequence[int]) -> None:
        ticket, version = task.ticket, task.states[0].version
        notes = self._exponents[ticket.layer].notes()
        if self._control.overflowed:
            task.next_version = replace(version, notes=notes)
            return
        updated = update_layer(
            self._store.updater,
            self._table[ticket.layer],
            task.buffers.sections,
            task.buffers.gradients,
            version.steps,
            usable,
            self._rules.step(ticket.trained, self._control.factor),
            self._geometry.shard_units(ticket.layer),
        )
        for section in self._geometry.state:
            self._store.verify(version, ticket.layer, section, updated.before[:, section.column].tolist())
        if updated.steps == version.steps:  # nothing changed: the same copy serves the next version
            task.next_version = replace(version, notes=notes)
            return
        self._control.replaced(ticket.layer, version)
        plane = self._store.place(ticket.layer, undo=self._control.loss_scale.dynamic)
        task.next_version = LayerVersion(plane, updated.after, updated.steps, notes)
        task.written = [
            self._store.write(plane, ticket.layer, section, task.buffers.sections[section.name])
            for section in self._geometry.sections
        ]

    def _retire(self, task: Task, last: int) -> None:
        ticket = task.ticket
        for transfer in task.written:
            transfer.wait()
            self._note_span("write", ticket.layer, transfer)
        if ticket.work is Work.GATHER:
            self.arena.give_back(task.buffers.region)
            if ticket.closes:  # all gradients are kept, and added up
                with self._change:
                    self._control.norm.close(task.overflowed)
                    self._normed = ticket.trained + 1
                    self._change.notify_all()
            return
        assert task.next_version is not None
        self._store.put(ticket.layer, task.next_version)
        with self._change:
            del self._fresh[ticket.layer]
            self._written[ticket.layer] = ticket.trained + 1
            self._change.notify_all()
        self.arena.give_back(task.buffers.region)
        if ticket.closes:
            for layer, version in task.undo.items():
                self._store.put(layer, replace(version, notes=self._exponents[layer].notes()))
            if task.undo:
                self._mark_ready(ticket)
            trained = ticket.trained + 1
            if trained % self._streaming.commit_every == 0 or trained == last:
                self._commit(trained, trained == last)

    def _commit(self, trained: int, final: bool) -> None:
        every = self._streaming.snapshot_every
        due = (every and trained % every == 0) or (self._group is not None and final)
        snapshot = snapshot_name(trained) if due else None
        with self._timeline.span("commit", 0):
            older = [name for name in self._store.snapshots if snapshot_step(name) is not None and name != snapshot]
            drop = older[: max(0, len(older) - self._streaming.keep + 1)] if snapshot else []
            if self._group is not None:
                record = self._group.record()
                needed = 0 if record is None else record.step
                drop = [name for name in drop if (snapshot_step(name) or 0) < needed]
            groups = pack_groups(self._table, torch_groups(self._rules, trained))
            notes = {**self._control.notes(), "groups": groups}
            self._store.commit(trained, notes, snapshot=snapshot, drop=drop)
            if self._group is not None and snapshot is not None:
                self._group.vote(self._store)
        with self._change:
            self._committed = trained
            self._change.notify_all()

    # ---- waiting -------------------------------------------------------------------------------

    def _await(self, condition: Callable[[], bool]) -> bool:
        with self._change:
            self._change.wait_for(lambda: self._stages.failure is not None or condition())
            return self._stages.failure is None

    def _await_pushed(self, task: Task) -> None:
        assert task.pushed is not None
        task.pushed.wait()
        self._timeline.add("push", task.ticket.layer, task.asked, task.asked + task.pushed.latency)

    def _note_span(self, kind: str, layer: int, transfer: Transfer) -> None:
        if self._timeline.enabled:
            self._timeline.add(kind, layer, *transfer.span)
