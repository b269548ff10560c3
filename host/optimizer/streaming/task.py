"""A layer in flight: its buffers, and where it is on its way through the queues (LuWu, Figure 9b)."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from catchment.host.layers import Completion, LayerTable, Pass, Phase, WireType, header_size, message_size
from catchment.host.optimizer.store import Geometry, LayerVersion, Memory, Transfer
from catchment.host.optimizer.store.geometry import PAGE
from catchment.host.optimizer.streaming.arena import Region


class Work(enum.Enum):
    """What a task does with its layer."""

    FORWARD = enum.auto()
    BACKWARD = enum.auto()
    GATHER = enum.auto()
    """A backward whose gradients are only kept, until the norm of all is known (streaming.clipping)."""
    RESEND = enum.auto()
    """A backward whose gradients stay with the workers (Pass.ACCUMULATE)."""
    APPLY = enum.auto()
    """The update with gradients that were kept."""

    @property
    def sends(self) -> bool:
        """Parameters go down."""
        return self is not Work.APPLY

    @property
    def gathers(self) -> bool:
        """Gradients come up."""
        return self in (Work.BACKWARD, Work.GATHER)

    @property
    def updates(self) -> bool:
        """States are read, changed and written."""
        return self in (Work.BACKWARD, Work.APPLY)

    @property
    def phase(self) -> Phase:
        """Which half of a pass it belongs to."""
        return Phase.FORWARD if self is Work.FORWARD else Phase.BACKWARD


@dataclass(frozen=True, slots=True)
class Ticket:
    """One layer of one half of pass `number`, before which the model was trained `trained` times.

    `kind`: of the pass. `closes`: the task is the last one of its work in the pass. `last_pass`: there will be no
    further pass.
    """

    number: int
    trained: int
    layer: int
    work: Work
    kind: Pass
    closes: bool
    last_pass: bool


def schedule(layers: int, passes: Sequence[bool | Pass], trained: int, exact_clipping: bool) -> Iterator[Ticket]:
    """All tasks of all passes, in order; `trained`: training passes before the first."""
    upward, downward = range(layers), range(layers - 1, -1, -1)
    for number, kind in enumerate(map(Pass, passes)):
        halves: list[tuple[Work, range]] = [(Work.FORWARD, upward)]
        if kind is Pass.ACCUMULATE:
            halves += [(Work.RESEND, downward)]
        elif kind is Pass.TRAIN and exact_clipping:
            halves += [(Work.GATHER, downward), (Work.APPLY, upward)]
        elif kind is Pass.TRAIN:
            halves += [(Work.BACKWARD, downward)]
        for work, order in halves:
            for layer in order:
                yield Ticket(number, trained, layer, work, kind, layer == order[-1], number == len(passes) - 1)
        trained += kind is Pass.TRAIN


class Buffers:
    """A region of the arena cut up for one task.

    forward:   | zeros, header | parameters |, and so for resend
    gather:    | zeros, header | parameters | gradients |
    backward:  | zeros, header | parameters | gradients | master | first | second |, and so for apply

    The header ends where the parameters begin, which is on a page, as devices want it: one message without a copy.
    """

    def __init__(self, region: Region, geometry: Geometry, layer: int, work: Work) -> None:
        self.region = region
        self._header = header_size(geometry.table[layer])
        at = -(-self._header // PAGE) * PAGE
        self._message_start = at - self._header
        sent = geometry.section_bytes(layer, geometry.sent)
        self.parameters: Memory = region.memory[at : at + sent]
        self.sections: dict[str, Memory] = {}
        self.gradients: Memory = region.memory[:0]
        at += sent
        if work.gathers or work.updates:
            size = geometry.units(layer) * PAGE * 2
            self.gradients = region.memory[at : at + size]
            at += size
        if work.updates:
            for section in geometry.state:
                size = geometry.section_bytes(layer, section)
                self.sections[section.name] = region.memory[at : at + size]
                at += size
            if geometry.sent.name == "parameters":
                self.sections["parameters"] = self.parameters

    @staticmethod
    def size(geometry: Geometry, layer: int, work: Work) -> int:
        """Bytes of the region."""
        size = -(-header_size(geometry.table[layer]) // PAGE) * PAGE + geometry.section_bytes(layer, geometry.sent)
        if work.gathers or work.updates:
            size += geometry.units(layer) * PAGE * 2
        if work.updates:
            size += sum(geometry.section_bytes(layer, section) for section in geometry.state)
        return size

    def message(self, header: bytes, table: LayerTable, layer: int, wire: WireType) -> Memory:
        """The PARAM message, in place: `header` before the parameters."""
        start = self._message_start
        self.region.memory[start : start + self._header] = np.frombuffer(header, np.uint8)
        return self.region.memory[start : start + message_size(table[layer], wire)]


@dataclass(frozen=True, slots=True)
class Reading:
    """A section being read, and of which version."""

    version: LayerVersion
    transfer: Transfer


@dataclass(slots=True)
class Task:
    """What one layer owns while it is in flight.

    `reading`: of the parameters, None when they were copied from memory. `kept`: of gradients that were kept.
    `undo`: by layer, the versions that count again because the step overflowed; in the task that closes it.
    """

    ticket: Ticket
    buffers: Buffers
    reading: Reading | None
    pushed: Completion | None = None
    states: list[Reading] = field(default_factory=list)
    kept: Transfer | None = None
    sums: tuple[Completion, ...] = ()
    asked: float = 0.0
    written: list[Transfer] = field(default_factory=list)
    next_version: LayerVersion | None = None
    undo: dict[int, LayerVersion] = field(default_factory=dict)
    overflowed: bool = False
