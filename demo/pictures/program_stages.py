"""What a P4 program does to a frame, stage after stage, read from what the compiler makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import ExternType


@dataclass(frozen=True, slots=True)
class Memory:
    """A table with its keys, or an array of registers or counters with its size."""

    kind: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A control: its tables and arrays, then the controls inside it, in the order in which it uses them."""

    name: str
    kind: str
    memories: tuple[Memory, ...] = ()
    inside: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class Fork:
    """Arms of which a frame takes one."""

    arms: tuple[tuple[Item, ...], ...]


Item = Stage | Fork
_Found = Memory | Item


def stages(control: ir.Instance) -> tuple[Item, ...]:
    """The stages of an ingress or egress control."""
    return tuple(_as_item(found) for found in _of_statements(_body(control), control))


def extracted(parser: ir.Instance) -> tuple[str, ...]:
    """The headers that a parser takes from a frame."""
    assert isinstance(parser.unit, ir.ParserUnit)
    bodies = (state.body for state in parser.unit.states.values())
    calls = (node for body in bodies for node in ir.walk(body) if isinstance(node, ir.ExternCall))
    names = (str(call.type_args[0]) for call in calls if call.method == "extract")
    return tuple(dict.fromkeys(name.removesuffix("_h") for name in names))


def _body(control: ir.Instance) -> ir.Block:
    assert isinstance(control.unit, ir.ControlUnit)
    return control.unit.body


def _as_item(found: _Found) -> Item:
    return Stage(found.name, found.kind, (found,)) if isinstance(found, Memory) else found


def _of_statements(statements: ir.Stmt, within: ir.Instance) -> Iterator[_Found]:
    """What is used, in order; arms of which two use something make a fork."""
    match statements:
        case ir.Block(body=body):
            for statement in body:
                yield from _of_statements(statement, within)
        case ir.If(cond=cond, then=then, orelse=orelse):
            yield from _of_nodes(ir.walk(cond), within)
            yield from _of_arms([then, orelse], within)
        case ir.SwitchAction(table=table, cases=cases):
            yield _table(table)
            yield from _of_arms([case.body for case in cases], within)
        case ir.SwitchValue(cases=cases):
            yield from _of_arms([case.body for case in cases], within)
        case ir.UnitApply(instance=declared):
            child = within.children[declared.name]
            assert isinstance(child, ir.Instance)
            yield _stage(declared.name, child)
        case _:
            yield from _of_nodes(ir.walk(statements), within)


def _of_arms(bodies: Sequence[ir.Stmt], within: ir.Instance) -> Iterator[_Found]:
    arms = [arm for arm in (list(_of_statements(body, within)) for body in bodies) if arm]
    if len(arms) > 1:
        yield Fork(tuple(tuple(map(_as_item, arm)) for arm in arms))
    for arm in arms if len(arms) == 1 else ():
        yield from arm


def _of_nodes(nodes: Iterable[ir.Node], within: ir.Instance) -> Iterator[_Found]:
    for node in nodes:
        match node:
            case ir.TableApply(table=table):
                yield _table(table)
            case ir.ActionCall(action=action):
                yield from _of_statements(action.body, within)
            case ir.ExternCall(
                extern="register" | "counter" as kind,
                target=ir.InstanceDecl(name=name, type=ExternType(type_args=cell), args=(ir.Literal(value=size), *_)),
            ):
                yield Memory(kind, name, " of ".join([f"{size}", *map(str, cell)]))


def _table(table: ir.Table) -> Memory:
    return Memory("table", table.cp_name, ", ".join(f"{key.name} {key.kind}" for key in table.keys))


def _stage(name: str, control: ir.Instance) -> Stage:
    found = list(_flat(_of_statements(_body(control), control)))
    memories = dict.fromkeys(memory for memory in found if isinstance(memory, Memory))
    inside = dict.fromkeys(stage for stage in found if isinstance(stage, Stage))
    return Stage(name, control.unit.name, tuple(memories), tuple(_together(inside)))


def _flat(found: Iterable[_Found]) -> Iterator[Memory | Stage]:
    for one in found:
        if isinstance(one, Fork):
            for arm in one.arms:
                yield from _flat(arm)
        else:
            yield one


def _together(inside: Iterable[Stage]) -> Iterator[Stage]:
    """Neighbours of one kind as one: lane0 … lane63."""
    for kind, group in groupby(inside, key=lambda stage: stage.kind):
        first, *others = group
        name = f"{first.name} … {others[-1].name}" if others else first.name
        yield Stage(name, kind, first.memories, first.inside)
