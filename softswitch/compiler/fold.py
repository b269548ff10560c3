"""Compile-time arithmetic with integers of any size."""

from __future__ import annotations

from collections.abc import Callable

from catchment.softswitch.compiler.diagnostics import shown
from catchment.softswitch.compiler.types import BitType, InfIntType, IntType, SerEnumType, Type

LARGEST_SHIFT = 1 << 16
"""The most bits by which a value of type `int` is shifted, and the highest bit of it that a slice may have."""


LARGEST_NUMBER = 1 << 17
"""The most bits that a value of type `int` may have: more are hardly meant, and products of products never end."""


class FoldError(Exception):
    """A constant expression has no value; the message says why."""


def wrap(value: int, type_: Type) -> int:
    """`value` modulo the width of `type_`, in its range; unchanged for `int`."""
    if isinstance(type_, SerEnumType):
        type_ = type_.underlying
    if isinstance(type_, BitType):
        return value & ((1 << type_.width) - 1)
    if isinstance(type_, IntType):
        if type_.width == 0:
            return 0
        low = value & ((1 << type_.width) - 1)
        return low - (1 << type_.width) if low >> (type_.width - 1) else low
    return value


def limits(type_: BitType | IntType) -> tuple[int, int]:
    """The smallest and largest value."""
    if isinstance(type_, BitType):
        return 0, (1 << type_.width) - 1
    half = 1 << (type_.width - 1) if type_.width else 0
    return -half, max(half - 1, 0)


def saturate(value: int, type_: BitType | IntType) -> int:
    """`value` brought into the range of `type_`."""
    low, high = limits(type_)
    return min(max(value, low), high)


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise FoldError("division by zero")
    if left < 0 or right < 0:
        raise FoldError("division is not defined for negative numbers")
    return left // right


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise FoldError("modulo by zero")
    if left < 0 or right < 0:
        raise FoldError("modulo is not defined for negative numbers")
    return left % right


def shift(operator: str, left: int, right: int, type_: Type) -> int:
    """`left << right` or `left >> right`; beyond the width everything is shifted out."""
    if right < 0:
        raise FoldError("shift by a negative amount")
    if isinstance(type_, InfIntType):
        if right > LARGEST_SHIFT:
            raise FoldError(f"shift amount {shown(right)} is too large")
    elif isinstance(type_, BitType | IntType):
        right = min(right, type_.width)
    return _in_bounds(wrap(left << right if operator == "<<" else left >> right, type_), type_)


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divide,
    "%": _modulo,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
}
_COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


def arithmetic(operator: str, left: int, right: int, type_: Type) -> int:
    """The value of an arithmetic or bitwise operation on two values of `type_`. Raises `FoldError`."""
    if operator in ("|+|", "|-|"):
        assert isinstance(type_, BitType | IntType), "saturation needs a width"
        return saturate(left + right if operator == "|+|" else left - right, type_)
    return _in_bounds(wrap(_ARITHMETIC[operator](left, right), type_), type_)


def _in_bounds(value: int, type_: Type) -> int:
    if isinstance(type_, InfIntType) and value.bit_length() > LARGEST_NUMBER:
        raise FoldError(f"the value has more than {LARGEST_NUMBER} bits")
    return value


def compare(operator: str, left: int, right: int) -> bool:
    """The value of `<`, `>`, `<=`, `>=`."""
    return _COMPARISON[operator](left, right)


def bits(value: int, hi: int, lo: int) -> int:
    """`value[hi:lo]`, of the two's complement of `value`."""
    return (value >> lo) & ((1 << (hi - lo + 1)) - 1)


def concat(left: int, left_width: int, right: int, right_width: int) -> int:
    """`left ++ right`, unsigned."""
    return (left & ((1 << left_width) - 1)) << right_width | (right & ((1 << right_width) - 1))
