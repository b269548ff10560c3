"""Going through the nodes of a piece of IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from catchment.softswitch.compiler.ir.base import Node, Variable
from catchment.softswitch.compiler.ir.tables import Action, Function, ValueSet
from catchment.softswitch.compiler.ir.units import ControlUnit, InstanceDecl, ParserUnit, Table

_DECLARED = (Variable, Action, Function, Table, ControlUnit, ParserUnit, InstanceDecl, ValueSet)


def walk(node: object, closed: tuple[type[Node], ...] = ()) -> Iterator[Node]:
    """`node` and every node inside it, outermost first, in source order.

    A declared object that is only referred to (the table of an apply, the action of a call) is not entered, nor
    yielded. A node of a `closed` type is yielded and not entered.
    """
    pending = [node]
    while pending:
        at = pending.pop()
        inner: list[object] = []
        if isinstance(at, tuple):
            inner = [item for item in at if not isinstance(item, _DECLARED)]
        elif isinstance(at, Node):
            yield at
            if isinstance(at, closed):
                continue
            values = [getattr(at, field.name) for field in fields(at)]
            inner = [v for v in values if isinstance(v, tuple | Node) and not isinstance(v, _DECLARED)]
        pending += reversed(inner)


def same(one: object, other: object) -> bool:
    """Whether two pieces of IR are equal but for where they were written."""
    if isinstance(one, _DECLARED) or isinstance(other, _DECLARED):
        return one is other
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Node) and type(one) is type(other):
        names = [field.name for field in fields(one) if field.name != "loc" and field.compare]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    return one == other
