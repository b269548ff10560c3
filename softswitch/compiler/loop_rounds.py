"""Decides which loops count against a packet's step budget: those whose rounds the program's text does not bound."""

from __future__ import annotations

import operator
from collections.abc import Callable

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import BitType, IntType, StackType, TupleType, Type

MAX_STATIC_ROUNDS = 65536
"""A loop nest with more rounds is counted, however constant its bounds are."""

Loop = ir.For | ir.ForRange | ir.ForEach
_LOOPS = (ir.For, ir.ForRange, ir.ForEach)

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}


def counted_in(loop: Loop) -> dict[int, bool]:
    """Whether each round takes a step, of the loop and of all that are written inside it, by the loop's `id`.

    A round does where the packet may decide how many there are, or there are very many.
    """
    rounds: dict[int, int | None] = {}
    _nest_rounds(loop, rounds)
    return {number: found is None for number, found in rounds.items()}


def _nest_rounds(loop: Loop, known: dict[int, int | None]) -> int | None:
    """Rounds of the loop times those of the loops written inside it; None if more than MAX_STATIC_ROUNDS or unknown.

    A loop inside that is counted itself does not make this one counted. `known` gets the result of each.
    """
    loops = [node for node in ir.walk(loop.body, _LOOPS) if isinstance(node, _LOOPS)]
    inside = sum(_nest_rounds(inner, known) or 0 for inner in loops)
    own = _rounds(loop)
    total = MAX_STATIC_ROUNDS + 1 if own is None else own * max(1, inside)
    known[id(loop)] = total if total <= MAX_STATIC_ROUNDS else None
    return known[id(loop)]


def _rounds(loop: Loop) -> int | None:
    if isinstance(loop, ir.ForEach):
        t = loop.collection.type
        return t.size if isinstance(t, StackType) else len(t.elements) if isinstance(t, TupleType) else None
    if isinstance(loop, ir.ForRange):
        low, high = _number(loop.low), _number(loop.high)
        return None if low is None or high is None else _at_most(max(0, high - low + 1))
    return _counting_rounds(loop)


def _counting_rounds(loop: ir.For) -> int | None:
    """Rounds of `for (v = A; v OP B; v = v +- C)` with constants and a body that leaves v alone."""
    if len(loop.init) != 1 or len(loop.update) != 1 or not isinstance(loop.cond, ir.Binary):
        return None
    start, step = loop.init[0], loop.update[0]
    variable, value = _started(start)
    bound = _number(loop.cond.right)
    holds = _HOLDS.get(loop.cond.op)
    if variable is None or value is None or bound is None or holds is None or not _is(loop.cond.left, variable):
        return None
    by = _step(step, variable)
    if by is None or _writes(loop.body, variable, is_local=isinstance(start, ir.Declare)):
        return None
    rounds = 0
    while holds(value, bound):
        rounds += 1
        if rounds > MAX_STATIC_ROUNDS:
            return None
        value = _wrap(value + by, variable.type)
    return rounds


def _started(start: ir.Stmt) -> tuple[ir.Variable | None, int | None]:
    if isinstance(start, ir.Declare):
        return start.variable, _number(start.init) if start.init is not None else None
    if isinstance(start, ir.Assign) and isinstance(start.target, ir.VarRef):
        return start.target.variable, _number(start.value)
    return None, None


def _step(step: ir.Stmt, variable: ir.Variable) -> int | None:
    if not isinstance(step, ir.Assign) or not _is(step.target, variable) or not isinstance(step.value, ir.Binary):
        return None
    by = _number(step.value.right)
    if by is None or step.value.op not in ("+", "-") or not _is(step.value.left, variable):
        return None
    return by if step.value.op == "+" else -by


def _writes(body: ir.Block, variable: ir.Variable, *, is_local: bool) -> bool:
    """Whether the body may change the variable. Actions can, unless it `is_local` to the loop."""
    for node in ir.walk(body):
        if isinstance(node, ir.Assign) and any(_is(n, variable) for n in ir.walk(node.target)):
            return True
        if isinstance(node, ir.FunctionCall | ir.ExternCall | ir.ActionCall | ir.UnitApply) and any(
            _is(argument, variable) or _is_part(argument, variable) for argument in node.args
        ):
            return True
    runs_actions = any(isinstance(n, ir.ActionCall | ir.TableApply | ir.SwitchAction) for n in ir.walk(body))
    return runs_actions and not is_local


def _is_part(expr: ir.Expr, variable: ir.Variable) -> bool:
    return isinstance(expr, ir.Slice | ir.PlusSlice) and _is(expr.base, variable)


def _is(expr: object, variable: ir.Variable) -> bool:
    return isinstance(expr, ir.VarRef) and expr.variable is variable


def _number(expr: ir.Expr) -> int | None:
    if isinstance(expr, ir.Literal) and isinstance(expr.value, int) and not isinstance(expr.value, bool):
        return expr.value
    return None


def _at_most(rounds: int) -> int | None:
    return rounds if rounds <= MAX_STATIC_ROUNDS else None


def _wrap(value: int, t: Type) -> int:
    if isinstance(t, BitType):
        return value & ((1 << t.width) - 1)
    if isinstance(t, IntType):
        value &= (1 << t.width) - 1
        return value - (1 << t.width) if value >> (t.width - 1) else value
    return value
