"""P4's operators on bit<W> and int<W> as z3 terms, each with the misreadings that a compiler could have of it.

An operator has its operands as expressions, so that one row serves for variables, for constants and for one of each.
The terms are from the text of the specification (1.2.5, sections 8.7 to 8.12).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import z3
from bit_vector_programs import Typed

AMOUNT = 16
"""Bits of a shift's amount."""


@dataclass(frozen=True, slots=True)
class Row:
    """An operator's result, and what it would be if it was read otherwise."""

    result: Typed
    misreadings: tuple[z3.BitVecRef, ...] = ()


def resized(term: z3.BitVecRef, width: int, *, signed: bool = False) -> z3.BitVecRef:
    """A cast: the low bits, or more bits above that are the sign or 0."""
    more = width - term.size()
    if more > 0:
        return z3.SignExt(more, term) if signed else z3.ZeroExt(more, term)
    return z3.Extract(width - 1, 0, term)


def choice(condition: z3.BoolRef, yes: z3.BitVecRef, no: z3.BitVecRef) -> z3.BitVecRef:
    """`condition ? yes : no`."""
    return z3.If(condition, yes, no)


def bit(condition: z3.BoolRef) -> z3.BitVecRef:
    """A Boolean as bit<1>."""
    return choice(condition, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def saturated(sign: int, left: z3.BitVecRef, right: z3.BitVecRef, *, signed: bool) -> z3.BitVecRef:
    """left + sign * right, or the end of the type's range that it lies beyond."""
    width = left.size()
    wide = width + 2
    one, other = resized(left, wide, signed=signed), resized(right, wide, signed=signed)
    exact = one + other if sign > 0 else one - other
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    least, greatest = z3.BitVecVal(low, wide), z3.BitVecVal(high, wide)
    return resized(choice(exact < least, least, choice(exact > greatest, greatest, exact)), width)


def shifted(operator: str, left: z3.BitVecRef, amount: z3.BitVecRef, *, signed: bool) -> z3.BitVecRef:
    """A shift by an amount of any width; no amount is cut."""
    wide = max(left.size(), amount.size()) + 1
    value, by = resized(left, wide, signed=signed), resized(amount, wide)
    if operator == "<<":
        return resized(value << by, left.size())
    return resized(value >> by if signed else z3.LShR(value, by), left.size())


def _modulo_width(amount: z3.BitVecRef, width: int) -> z3.BitVecRef:
    """A machine's reading of an amount."""
    return z3.URem(amount, z3.BitVecVal(width, amount.size()))


def constant(value: int, width: int, *, signed: bool = False) -> Typed:
    """A number that is known when the program is compiled."""
    text = f"{width}w{value}"
    return Typed(f"((int<{width}>){text})" if signed else text, z3.BitVecVal(value, width), signed)


def _both(a: Typed, b: Typed) -> Iterator[Row]:
    """What both kinds of numbers have."""
    signed, x, y, width = a.signed, a.term, b.term, a.term.size()
    yield Row(Typed(f"({a.text}) + ({b.text})", x + y, signed), (saturated(1, x, y, signed=signed), x ^ y))
    yield Row(Typed(f"({a.text}) - ({b.text})", x - y, signed), (y - x, saturated(-1, x, y, signed=signed)))
    wide = resized(x, 2 * width, signed=signed) * resized(y, 2 * width, signed=signed)
    yield Row(Typed(f"({a.text}) * ({b.text})", x * y, signed), (z3.Extract(2 * width - 1, width, wide), x + y))
    for operator, sign in (("|+|", 1), ("|-|", -1)):
        yield Row(
            Typed(f"({a.text}) {operator} ({b.text})", saturated(sign, x, y, signed=signed), signed),
            (x + y if sign > 0 else x - y, saturated(sign, x, y, signed=not signed)),
        )
    yield Row(Typed(f"({a.text}) & ({b.text})", x & y, signed), (x | y,))
    yield Row(Typed(f"({a.text}) | ({b.text})", x | y, signed), (x ^ y, x + y))
    yield Row(Typed(f"({a.text}) ^ ({b.text})", x ^ y, signed), (x | y,))
    yield Row(Typed(f"~({a.text})", ~x, signed), (-x,))
    yield Row(Typed(f"-({a.text})", -x, signed), (~x,))
    yield Row(Typed(f"+({a.text})", x, signed), (-x,))
    yield from _comparisons(a, b)


def _comparisons(a: Typed, b: Typed) -> Iterator[Row]:
    x, y = a.term, b.term
    as_signed = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
    as_unsigned = {"<": z3.ULT(x, y), "<=": z3.ULE(x, y), ">": z3.UGT(x, y), ">=": z3.UGE(x, y)}
    right, wrong = (as_signed, as_unsigned) if a.signed else (as_unsigned, as_signed)
    strict = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for operator, condition in right.items():
        text = f"(({a.text}) {operator} ({b.text}))"
        yield Row(Typed(f"{text} ? 1w1 : 1w0", bit(condition)), (bit(wrong[operator]), bit(right[strict[operator]])))
        yield Row(Typed(f"{text} ? ({a.text}) : ({b.text})", choice(condition, x, y), a.signed))
    yield Row(Typed(f"(({a.text}) == ({b.text})) ? 1w1 : 1w0", bit(x == y)), (bit(x != y),))
    yield Row(Typed(f"(({a.text}) != ({b.text})) ? 1w1 : 1w0", bit(x != y)), (bit(z3.UGT(x, y)),))


def _shifts(a: Typed, amount: Typed) -> Iterator[Row]:
    width = a.term.size()
    for operator in ("<<", ">>"):
        result = shifted(operator, a.term, amount.term, signed=a.signed)
        cut = shifted(operator, a.term, _modulo_width(amount.term, width), signed=a.signed)
        other = shifted(">>", a.term, amount.term, signed=not a.signed)
        wrong = (cut, other) if operator == ">>" else (cut,)
        yield Row(Typed(f"({a.text}) {operator} ({amount.text})", result, a.signed), wrong)
        for by in sorted({0, 1, width - 1, width, width + 1}):
            result = shifted(operator, a.term, z3.BitVecVal(by, AMOUNT), signed=a.signed)
            yield Row(Typed(f"({a.text}) {operator} {by}", result, a.signed))


def _parts(a: Typed) -> Iterator[Row]:
    """Slices, and casts between widths and kinds."""
    x, width = a.term, a.term.size()
    for high, low in sorted({(width - 1, 0), (width - 1, width // 2), (width // 2, 0), (width // 2, width // 3)}):
        mirrored = (width - 1 - low, width - 1 - high)
        wrong = () if mirrored == (high, low) else (z3.Extract(*mirrored, x),)
        yield Row(Typed(f"({a.text})[{high}:{low}]", z3.Extract(high, low, x)), wrong)
    for other in sorted({1, max(1, width // 2), max(1, width - 1), width + 1, 2 * width} - {width}):
        result = resized(x, other, signed=a.signed)
        upper = (
            (z3.Extract(width - 1, width - other, x),) if other < width else (resized(x, other, signed=not a.signed),)
        )
        yield Row(Typed(f"({'int' if a.signed else 'bit'}<{other}>)({a.text})", result, a.signed), upper)
    yield Row(Typed(f"({'bit' if a.signed else 'int'}<{width}>)({a.text})", x, not a.signed))


def _joined(a: Typed, b: Typed) -> Row:
    text = f"({a.text}) ++ ({b.text})"
    return Row(Typed(text, z3.Concat(a.term, b.term), a.signed), (z3.Concat(b.term, a.term),))


def _divisions(a: Typed) -> Iterator[Row]:
    """Divisions by powers of two, which is all that a value known at run time can be divided by."""
    width = a.term.size()
    for power in sorted({0, 1, width // 2, width - 1} & set(range(width))):
        divisor = z3.BitVecVal(1 << power, width)
        text = f"{width}w{1 << power}"
        for operator, result, wrong in (
            ("/", z3.UDiv(a.term, divisor), a.term / divisor),
            ("%", z3.URem(a.term, divisor), z3.SRem(a.term, divisor)),
        ):
            yield Row(Typed(f"({a.text}) {operator} {text}", result), () if power == 0 else (wrong,))


def unsigned_rows(a: Typed, b: Typed, amount: Typed) -> list[Row]:
    """Everything that two values of bit<W> and an amount can be combined to."""
    return [*_both(a, b), *_shifts(a, amount), *_parts(a), _joined(a, b), *_divisions(a)]


def signed_rows(a: Typed, b: Typed, amount: Typed, unsigned: Typed) -> list[Row]:
    """Everything of int<W>; `unsigned` is joined below a signed value."""
    return [*_both(a, b), *_shifts(a, amount), *_parts(a), _joined(a, unsigned)]
