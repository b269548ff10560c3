"""Cables of a machine: their faults, and captures of what they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from catchment.controlplane.diagnosis.pcapng import INBOUND, OUTBOUND, PcapngWriter
from catchment.sim.cosim.models import PICOS_PER_NANO
from catchment.sim.world import Faults


class Cable:
    """A cable: its two lines, `up` from its first end (a host, or the switch further from the top)."""

    def __init__(self, up: Any, down: Any) -> None:
        self.up = up
        self.down = down

    def faults(self, faults: Faults) -> None:
        """Record from now on, in both directions."""
        for line in (self.up, self.down):
            line.set_faults(faults)


@dataclass(frozen=True, slots=True)
class Sighting:
    """A frame on a cable.

    Attributes:
        cable: its name in the machine.
        up: whether it goes away from the cable's first end.
        picos: the time at which its first bit leaves.
        lost: whether it does not arrive.
        frame: the bytes, without FCS.
    """

    cable: str
    up: bool
    picos: int
    lost: bool
    frame: bytes


def in_order(cables: Mapping[str, Cable], sightings: Iterable[tuple[int, int, bool, bytes]]) -> list[Sighting]:
    """What the native machine saw, (line, ps, lost, frame), in the order of their times."""
    ways = {line.number: (name, line is cable.up) for name, cable in cables.items() for line in (cable.up, cable.down)}
    return [
        Sighting(*ways[line], picos, lost, frame)
        for line, picos, lost, frame in sorted(sightings, key=lambda one: one[1])
    ]


def write_capture(out: BinaryIO, cables: Iterable[str], sightings: Iterable[Sighting]) -> None:
    """Write a pcapng file of what was seen on cables, by their names.

    Each cable is two interfaces, what arrived and what was lost; the direction is seen from the cable's first end.
    """
    writer = PcapngWriter(out)
    interfaces = {
        (name, lost): writer.add_interface(what, f"cable of {name}{', frames lost' if lost else ''}")
        for name in cables
        for lost, what in ((False, name), (True, f"{name} lost"))
    }
    for seen in sightings:
        direction = OUTBOUND if seen.up else INBOUND
        writer.add_frame(interfaces[seen.cable, seen.lost], seen.picos // PICOS_PER_NANO, seen.frame, direction)
