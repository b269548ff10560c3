"""Compile-time arithmetic, against Python's own integers and against values worked out by hand."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from p4_programs import check, program

from catchment.softswitch.compiler import fold, ir
from catchment.softswitch.compiler.types import BitType, InfIntType, IntType, Type


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


def range_of(type_: BitType | IntType) -> range:
    """Every value of a narrow type, by the specification (7.1.6.2 and 7.1.6.3)."""
    if isinstance(type_, BitType):
        return range(2**type_.width)
    return range(-(2 ** (type_.width - 1)), 2 ** (type_.width - 1))


def by_definition(operator: str, left: int, right: int, type_: BitType | IntType) -> int:
    """The one value of the type that is right modulo its width, or the nearest one where the operator saturates."""
    values = range_of(type_)
    whole = {
        "+": left + right, "-": left - right, "*": left * right, "|+|": left + right, "|-|": left - right,
        "&": left & right, "|": left | right, "^": left ^ right,
        "<<": left * 2**right, ">>": left // 2**right,
    }[operator]  # fmt: skip
    if operator in ("|+|", "|-|"):
        return min(values, key=lambda value: abs(value - whole))
    return next(value for value in values if (value - whole) % 2**type_.width == 0)


@pytest.mark.parametrize("type_", [BitType(1), BitType(3), IntType(1), IntType(2), IntType(3)], ids=str)
def test_every_pair_of_narrow_values(type_: BitType | IntType) -> None:
    values = range_of(type_)
    assert fold.limits(type_) == (values[0], values[-1])
    for left in values:
        for right in values:
            for operator in ("+", "-", "*", "&", "|", "^", "|+|", "|-|"):
                assert fold.arithmetic(operator, left, right, type_) == by_definition(operator, left, right, type_)
            for operator, holds in (("<", left < right), (">", left > right), ("<=", left <= right)):
                assert fold.compare(operator, left, right) is holds
            assert fold.compare(">=", left, right) is not (left < right)
        for amount in range(2 * type_.width + 2):
            for operator in ("<<", ">>"):
                assert fold.shift(operator, left, amount, type_) == by_definition(operator, left, amount, type_)


@pytest.mark.parametrize("operator", ["/", "%"])
def test_both_sides_of_a_division_are_positive(operator: str) -> None:
    for left, right in ((5, -2), (-5, -2), (-1, 1)):
        with pytest.raises(fold.FoldError, match="negative"):
            fold.arithmetic(operator, left, right, InfIntType())
    assert fold.arithmetic(operator, 17, 5, BitType(8)) == {"/": 3, "%": 2}[operator]


def test_shifts_that_have_no_value_or_too_large_a_one() -> None:
    with pytest.raises(fold.FoldError, match="negative amount"):
        fold.shift("<<", 1, -1, BitType(8))
    with pytest.raises(fold.FoldError, match="65537 is too large"):
        fold.shift("<<", 1, (1 << 16) + 1, InfIntType())
    assert fold.shift(">>", fold.shift("<<", 3, 1 << 16, InfIntType()), 1 << 16, InfIntType()) == 3
    assert fold.shift("<<", 1, 1 << 70, BitType(8)) == 0
    assert fold.shift(">>", -1, 1 << 70, IntType(8)) == -1


def test_a_type_without_bits_has_one_value() -> None:
    assert fold.limits(IntType(0)) == (0, 0)
    assert fold.wrap(7, IntType(0)) == 0
    assert fold.limits(BitType(0)) == (0, 0)


def test_slices_and_concatenations_are_of_the_bits() -> None:
    for value in range(-8, 8):
        text = format(value % 16, "04b")
        for low in range(4):
            for high in range(low, 4):
                assert fold.bits(value, high, low) == int(text[3 - high : 4 - low], 2)
        assert fold.concat(value, 4, 1, 2) == int(text + "01", 2)
        assert fold.concat(1, 2, value, 4) == int("01" + text, 2)
