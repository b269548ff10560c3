"""One program, several switches, the same packets: the first difference, or none."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

from generator_delivery import GROUPS, SESSIONS
from random_packets import random_packet

from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

QUICK = ("-O0", "-fno-lto")
MAX_STEPS = 300
"""The most steps of loops for a packet: few, since random loops may have no end."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What two switches made of the same packet."""

    number: int
    port: int
    packet: bytes
    interpreted: list[tuple[int, bytes]]
    other: list[tuple[int, bytes]]
    what: str = "compiled"

    def __str__(self) -> str:
        def lines(frames: list[tuple[int, bytes]]) -> str:
            return "".join(f"\n    {port} {frame.hex()}" for port, frame in frames) or "\n    nothing"

        head = f"packet {self.number} by port {self.port}: {self.packet.hex()}"
        return f"{head}\n  interpreted:{lines(self.interpreted)}\n  {self.what}:{lines(self.other)}"


def packets_for(rng: random.Random, count: int) -> list[tuple[int, bytes]]:
    """(port, packet)."""
    return [(rng.randrange(8), random_packet(rng)) for _ in range(count)]


class Deliveries:
    """Clone sessions, groups and meters of a switch, and the digests that it has sent since it was asked.

    The meters' buckets are never filled again, so that no colour depends on time.
    """

    def __init__(self, switch: Switch | InterpretedSwitch) -> None:
        self._digests: list[tuple[str, list[int]]] = []
        switch.multicast(GROUPS[0], [1, 2])
        switch.multicast(GROUPS[1], [(3, 1), (4, 2), (3, 7)])
        switch.clone_session(SESSIONS[0], [5])
        switch.clone_session(SESSIONS[1], [(6, 1), (7, 2)], 20)
        for control in ("I", "E"):
            switch.write_meter(f"meter_{control}", None, cir=0, cburst=30, pir=0, pburst=300)
        switch.on_digest(lambda name, values: self._digests.append((name, values)))

    def digests(self) -> list[tuple[int, bytes]]:
        """The digests as frames, for a comparison."""
        said = [(-1, f"digest {name} {values}".encode()) for name, values in self._digests]
        self._digests.clear()
        return said


def compare_compiled(
    source: Path, packets: list[tuple[int, bytes]], cache: Path, *, delivery: bool = False
) -> Difference | None:
    """The compiled switch beside the interpreter, registers included; `delivery`: digests, too (`Options.delivery`)."""
    compiled = Switch(build(source, flags=QUICK, cache_dir=cache), seed=1, max_steps=MAX_STEPS)
    interpreted = InterpretedSwitch(check_file(source).program, seed=1, max_steps=MAX_STEPS)
    besides = [Deliveries(switch) for switch in (interpreted, compiled)] if delivery else []
    for number, (port, packet) in enumerate(packets):
        wanted, got = interpreted.inject(port, packet), compiled.inject(port, packet)
        if besides:
            wanted, got = ([*frames, *extra.digests()] for frames, extra in zip((wanted, got), besides, strict=True))
        if wanted != got:
            return Difference(number, port, packet, wanted, got)
    for name in interpreted.state.registers:
        wanted_cells, got_cells = interpreted.read_registers(name), compiled.read_registers(name)
        if wanted_cells != got_cells:
            shown = [(i, str(cell).encode()) for i, cell in enumerate(wanted_cells)]
            return Difference(-1, 0, name.encode(), shown, [(i, str(c).encode()) for i, c in enumerate(got_cells)])
    return None
