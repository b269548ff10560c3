"""Places everything: sections of a layer, shards of a section, planes of a store.

A layer has sections: its parameters as they are sent, fp32 master weights, one or two moments. In memory a section
is one flat array, padded to whole units of 2048 elements. On disk its units are dealt out to the devices, a contiguous
shard each, and a device holds a layer's shards back to back:

    device 0:  manifest | commit A | commit B | plane 0: layer 0 [P M m v] layer 1 [P M m v] .. | plane 1: ..

A plane has room for the whole model. A layer's state is in one plane; its next version goes to another.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from catchment.host.layers import LayerTable
from catchment.host.optimizer.store.errors import StoreError

UNIT = 2048
"""Elements of the smallest piece of a section; host._optimizer has the same. Two bytes each make a page."""
PAGE = 4096
DIGESTS = 4
"""Columns of a table of digests: parameters, master, first and second moment."""


class Rule(enum.StrEnum):
    """What kind of optimizer the moments belong to."""

    ADAM = "adam"
    SGD = "sgd"

    @property
    def moments(self) -> int:
        """Moments of one element."""
        return 2 if self is Rule.ADAM else 1


class Precision(enum.StrEnum):
    """Element type of a section on disk."""

    FP32 = "fp32"
    BF16 = "bf16"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return 4 if self is Precision.FP32 else 2


@dataclass(frozen=True, slots=True)
class Section:
    """One kind of state of a layer: `column` is its place in a table of digests, `size` an element's bytes."""

    name: str
    column: int
    size: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A section's part on one device: `units` units from unit number `first`, at `offset` (bytes, within a plane)."""

    device: int
    first: int
    units: int
    offset: int


@dataclass(frozen=True)
class Geometry:
    """Follows from the model, the types and the number of devices alone.

    Parameters of type fp32 are the master weights and have no section of their own.
    """

    table: LayerTable
    devices: int
    rule: Rule = Rule.ADAM
    parameters: Precision = Precision.BF16
    moments: Precision = Precision.FP32

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise StoreError("a store without devices", kind="argument", hint="name at least one")

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """All of them, in the order in which they lie on disk."""
        own = (Section("parameters", 0, 2),) if self.parameters is Precision.BF16 else ()
        moments = (Section("first", 2, self.moments.size), Section("second", 3, self.moments.size))
        return (*own, Section("master", 1, 4), *moments[: self.rule.moments])

    @property
    def sent(self) -> Section:
        """The section that is read for a PARAM message."""
        return self.sections[0]

    @property
    def state(self) -> tuple[Section, ...]:
        """The sections that are read for an update."""
        return tuple(section for section in self.sections if section.name != "parameters")

    def units(self, layer: int) -> int:
        """Units of a section of `layer`."""
        return -(-self.table[layer].numel // UNIT)

    def section_bytes(self, layer: int, section: Section) -> int:
        """Bytes of a whole section in memory, padding included."""
        return self.units(layer) * UNIT * section.size

    def shard_units(self, layer: int) -> tuple[int, ...]:
        """Units of a layer's sections on each device; the devices that get one more go round with the layers."""
        whole, extra = divmod(self.units(layer), self.devices)
        return tuple(whole + ((device - layer) % self.devices < extra) for device in range(self.devices))

    def shards(self, layer: int, section: Section) -> Iterator[Shard]:
        """The parts of a section that have anything in them, device by device."""
        before = UNIT * sum(each.size for each in self.sections[: self.sections.index(section)])
        first = 0
        for device, units in enumerate(self.shard_units(layer)):
            if units:
                yield Shard(device, first, units, self._starts[device][layer] + units * before)
            first += units

    def plane_bytes(self, device: int) -> int:
        """Bytes of a plane on `device`."""
        return self._starts[device][-1]

    @cached_property
    def _starts(self) -> tuple[tuple[int, ...], ...]:
        element = sum(section.size for section in self.sections)
        starts = []
        for device in range(self.devices):
            at = [0]
            for layer in range(len(self.table)):
                at.append(at[-1] + self.shard_units(layer)[device] * UNIT * element)
            starts.append(tuple(at))
        return tuple(starts)
