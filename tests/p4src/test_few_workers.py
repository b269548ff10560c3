"""A switch that is built for 32 workers (`workers: 32` of a topology) holds no more than before 64 were taken."""

from __future__ import annotations

import pytest
from scenarios import ROOT

from catchment.softswitch.compiler.driver import compile_program
from catchment.wire.generated import p4info_pb2

FEW = 32
MOST = 1.03
BEFORE_64 = {
    ("luwu", 8): 532_480,
    ("luwu", 64): 2_367_488,
    ("luwu", 256): 8_658_944,
    ("p4sgd", 8): 28_311_552,
    ("p4sgd", 64): 145_752_064,
    ("p4sgd", 256): 548_405_248,
}
"""Bits of registers of the last program that took 32 workers at most, by program and lanes."""


def register_bits(info: p4info_pb2.P4Info) -> int:
    return sum(register.size * register.type_spec.bitstring.bit.bitwidth for register in info.registers)


@pytest.mark.parametrize(("program", "lanes"), BEFORE_64)
def test_a_build_for_32_workers_pays_nothing_for_64(program: str, lanes: int) -> None:
    built = compile_program(ROOT / f"p4src/{program}.p4", defines={"LANES": str(lanes), "MAX_WORKERS": str(FEW)})
    bits = register_bits(built.p4info)
    assert bits <= MOST * BEFORE_64[program, lanes], f"{bits} bits of registers, {BEFORE_64[program, lanes]} before"
