"""A layer in flight: its buffers, and where it is on its way through the queues (LuWu, Figure 9b)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from host.layers import Completion, LayerTable, Phase, WireType, header_size, message_size
from host.optimizer.store import Geometry, LayerVersion, Memory, Transfer
from host.optimizer.store.geometry import PAGE
from host.optimizer.streaming.arena import Region


@dataclass(frozen=True, slots=True)
class Ticket:
    """One layer of one half of pass `number`, before which the model was trained `trained` times."""

    number: int
    trained: int
    layer: int
    phase: Phase
    train: bool
    last_pass: bool


class Buffers:
    """A region of the arena cut up for one task.

    forward:   | zeros, header | parameters |
    backward:  | zeros, header | parameters | gradients | master | first | second |

    The header ends where the parameters begin, which is on a page, as devices want it: one message without a copy.
    """

    def __init__(self, region: Region, geometry: Geometry, layer: int, phase: Phase) -> None:
        self.region = region
        self._header = header_size(geometry.table[layer])
        at = -(-self._header // PAGE) * PAGE
        self._message_start = at - self._header
        sent = geometry.section_bytes(layer, geometry.sent)
        self.parameters: Memory = region.memory[at : at + sent]
        self.sections: dict[str, Memory] = {}
        self.gradients: Memory = region.memory[:0]
        at += sent
        if phase is Phase.BACKWARD:
            size = geometry.units(layer) * PAGE * 2
            self.gradients = region.memory[at : at + size]
            at += size
            for section in geometry.state:
                size = geometry.section_bytes(layer, section)
                self.sections[section.name] = region.memory[at : at + size]
                at += size
            if geometry.sent.name == "parameters":
                self.sections["parameters"] = self.parameters

    @staticmethod
    def size(geometry: Geometry, layer: int, phase: Phase) -> int:
        """Bytes of the region."""
        size = -(-header_size(geometry.table[layer]) // PAGE) * PAGE + geometry.section_bytes(layer, geometry.sent)
        if phase is Phase.BACKWARD:
            size += geometry.units(layer) * PAGE * 2
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
    """What one layer owns while it is in flight. `reading`: None when its parameters were copied from memory."""

    ticket: Ticket
    buffers: Buffers
    reading: Reading | None
    pushed: Completion | None = None
    states: list[Reading] = field(default_factory=list)
    sums: tuple[Completion, ...] = ()
    asked: float = 0.0
    written: list[Transfer] = field(default_factory=list)
    next_version: LayerVersion | None = None
