"""Cables of a machine: their faults, and captures of what they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def write_capture(
    out: BinaryIO, cables: Mapping[str, Cable], sightings: Iterable[tuple[int, int, bool, bytes]]
) -> None:
    """A pcapng file of (line, ps, lost, frame), in the order of their times.

    Each cable is two interfaces, what arrived and what was lost; the direction is seen from the cable's first end.
    """
    writer = PcapngWriter(out)
    places: dict[tuple[int, bool], tuple[int, int]] = {}
    for name, cable in cables.items():
        for lost, what in ((False, name), (True, f"{name} lost")):
            interface = writer.add_interface(what, f"cable of {name}{', frames lost' if lost else ''}")
            places[cable.up.number, lost] = (interface, OUTBOUND)
            places[cable.down.number, lost] = (interface, INBOUND)
    for line, at, lost, frame in sorted(sightings, key=lambda one: one[1]):
        interface, direction = places[line, lost]
        writer.add_frame(interface, at // PICOS_PER_NANO, frame, direction)
