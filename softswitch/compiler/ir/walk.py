"""Going through the nodes of a piece of IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from catchment.softswitch.compiler.ir.base import Node, Variable
from catchment.softswitch.compiler.ir.tables import Action, Function, ValueSet
from catchment.softswitch.compiler.ir.units import ControlUnit, InstanceDecl, ParserUnit, Table

_DECLARED = (Variable, Action, Function, Table, ControlUnit, ParserUnit, InstanceDecl, ValueSet)


def walk(node: object) -> Iterator[Node]:
    """`node` and every node inside it, outermost first, in source order.

    A declared object that is only referred to (the table of an apply, the action of a call) is not entered, nor
    yielded.
    """
    if isinstance(node, tuple):
        for item in node:
            if not isinstance(item, _DECLARED):
                yield from walk(item)
    elif isinstance(node, Node):
        yield node
        for field in fields(node):
            value = getattr(node, field.name)
            if isinstance(value, tuple | Node) and not isinstance(value, _DECLARED):
                yield from walk(value)


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
