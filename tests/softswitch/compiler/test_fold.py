"""Compile-time arithmetic, against Python's own integers and against values worked out by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from p4_programs import check, program

from catchment.softswitch.compiler import fold, ir
from catchment.softswitch.compiler.types import BitType, IntType, Type


def value_of(tmp_path: Path, type_: str, expression: str) -> int | bool | str:
    """The value of a constant of a checked program."""
    source = program(top=f"const {type_} k = {expression};", locals_=f"    {type_} out_k = k;")
    unit = check(tmp_path, source).program.pipeline["ig"].unit
    assert isinstance(unit, ir.ControlUnit)
    init = unit.locals[0].init
    assert isinstance(init, ir.Literal)
    return init.value


@pytest.mark.parametrize(
    ("type_", "expression", "value"),
    [
        ("bit<8>", "8w250 + 8w10", 4),
        ("bit<8>", "8w3 - 8w5", 254),
        ("int<8>", "8s127 + 8s1", -128),
        ("bit<8>", "8w250 |+| 8w10", 255),
        ("bit<8>", "8w3 |-| 8w5", 0),
        ("int<8>", "-8s100 |-| 8s100", -128),
        ("bit<8>", "~8w0x0f", 0xF0),
        ("bit<8>", "8w1 << 9", 0),
        ("int<8>", "-8s8 >> 1", -4),
        ("bit<8>", "8w0x88 >> 3", 0x11),
        ("bit<16>", "8w0xab ++ 8w0xcd", 0xABCD),
        ("bit<4>", "16w0xabcd[11:8]", 0xB),
        ("bit<8>", "(bit<8>)(int<8>)-1", 255),
        ("int<8>", "(int<8>)8w200", -56),
        ("int<16>", "(int<16>)-8s2", -2),
        ("bit<16>", "(bit<16>)(bit<8>)0x1ff", 0xFF),
        ("bit<8>", "(1 << 100) >> 98", 4),
        ("bit<8>", "7 / 2 + 7 % 4", 6),
        ("bit<64>", "1 << 63", 1 << 63),
        ("bit<2048>", "(2048w1 << 2047) | 1", (1 << 2047) | 1),
        ("bool", "8w3 > 8w2 && !(1 == 2)", True),
        ("bool", "-8s1 < 8s0", True),
        ("bit<8>", "true ? 8w1 : 8w2", 1),
        ("bit<1>", "(bit<1>)true", 1),
    ],
)
def test_constant(tmp_path: Path, type_: str, expression: str, value: int) -> None:
    assert value_of(tmp_path, type_, expression) == value


def test_wrap_and_saturate_against_a_slow_model(rng: random.Random) -> None:
    for _ in range(500):
        width = rng.choice([1, 2, 7, 8, 31, 32, 64, 257])
        type_: Type = rng.choice([BitType, IntType])(width)
        assert isinstance(type_, BitType | IntType)
        low, high = fold.limits(type_)
        value = rng.randint(-(1 << width + 2), 1 << width + 2)
        wrapped = fold.wrap(value, type_)
        assert low <= wrapped <= high
        assert (wrapped - value) % (1 << width) == 0
        assert fold.saturate(value, type_) == sorted((low, value, high))[1]


@pytest.mark.parametrize("operator", ["/", "%"])
def test_division_refuses_what_has_no_value(operator: str) -> None:
    with pytest.raises(fold.FoldError, match="zero"):
        fold.arithmetic(operator, 5, 0, BitType(8))
    with pytest.raises(fold.FoldError, match="negative"):
        fold.arithmetic(operator, -5, 2, IntType(8))
