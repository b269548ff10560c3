"""Operators on numbers, as the P4_16 specification defines them; division by zero gives zero, as in BMv2."""

from __future__ import annotations

from catchment.softswitch.compiler.types import Type
from catchment.softswitch.interpreter.errors import InterpreterError
from catchment.softswitch.interpreter.values import from_bits, is_signed, width_of


def wrapped(number: int, t: Type) -> int:
    """`number` modulo the width of `t`, in its range."""
    value = from_bits(number, t)
    assert isinstance(value, int)
    return value


def saturated(number: int, t: Type) -> int:
    """`number` brought into the range of `t`."""
    width = width_of(t)
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if is_signed(t) else (0, (1 << width) - 1)
    return max(low, min(high, number))


def shifted(operator: str, left: int, amount: int, t: Type) -> int:
    """`<<` and `>>`: from the width on everything is shifted out; `>>` of a signed number keeps its sign."""
    amount = min(amount, width_of(t))
    return wrapped(left << amount, t) if operator == "<<" else left >> amount


def compute(operator: str, left: int, right: int, t: Type) -> int:  # noqa: PLR0912 - one branch per operator
    """`left operator right`, both of type `t` (the amount of a shift: any number); a bool for comparisons."""
    match operator:
        case "+":
            return wrapped(left + right, t)
        case "-":
            return wrapped(left - right, t)
        case "*":
            return wrapped(left * right, t)
        case "/":
            return left // right if right else 0
        case "%":
            return left % right if right else 0
        case "&":
            return wrapped(left & right, t)
        case "|":
            return wrapped(left | right, t)
        case "^":
            return wrapped(left ^ right, t)
        case "|+|":
            return saturated(left + right, t)
        case "|-|":
            return saturated(left - right, t)
        case "<<" | ">>":
            return shifted(operator, left, right, t)
        case "<":
            return left < right
        case ">":
            return left > right
        case "<=":
            return left <= right
        case ">=":
            return left >= right
    raise InterpreterError(f"operator {operator}")
