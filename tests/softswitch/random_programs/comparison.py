"""One program, several switches, the same packets: the first difference, or none."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

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


def compare_compiled(source: Path, packets: list[tuple[int, bytes]], cache: Path) -> Difference | None:
    """The compiled switch beside the interpreter, registers included."""
    compiled = Switch(build(source, flags=QUICK, cache_dir=cache), seed=1, max_steps=MAX_STEPS)
    interpreted = InterpretedSwitch(check_file(source).program, seed=1, max_steps=MAX_STEPS)
    for number, (port, packet) in enumerate(packets):
        wanted, got = interpreted.inject(port, packet), compiled.inject(port, packet)
        if wanted != got:
            return Difference(number, port, packet, wanted, got)
    for name in interpreted.state.registers:
        wanted_cells, got_cells = interpreted.read_registers(name), compiled.read_registers(name)
        if wanted_cells != got_cells:
            shown = [(i, str(cell).encode()) for i, cell in enumerate(wanted_cells)]
            return Difference(-1, 0, name.encode(), shown, [(i, str(c).encode()) for i, c in enumerate(got_cells)])
    return None
