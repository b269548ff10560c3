"""What ir/__init__.py promises, checked on a whole program."""

from __future__ import annotations

from collections.abc import Iterator

from catchment.softswitch.compiler import fold, ir
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    FieldsType,
    InfIntType,
    IntType,
    SerEnumType,
    StackType,
    StringType,
    TupleType,
    Type,
    TypeVar,
    VoidType,
)


def violations(program: ir.Program) -> list[str]:
    """Every broken promise, with its place."""
    return [
        f"{node.loc}: {type(node).__name__}: {text}"
        for part in _parts(program)
        for node in ir.walk(part)
        for text in _check(node)
    ]


def _parts(program: ir.Program) -> Iterator[object]:
    for action in program.global_actions:
        yield action.body
    for function in program.functions:
        yield function.body
    for unit in program.units:
        yield from unit.locals
        if isinstance(unit, ir.ControlUnit):
            yield unit.body
            yield from (a.body for a in unit.actions)
            for table in unit.tables:
                yield from ((*table.keys, *table.entries, table.default_action))
        else:
            yield from unit.states.values()


def _check(node: ir.Node) -> Iterator[str]:  # noqa: PLR0912 - one branch per kind of node
    if isinstance(node, ir.Expr):
        if type(node).__module__.startswith("catchment.softswitch.compiler.check"):
            yield "a node of the checker got out"
        if isinstance(node.type, TypeVar):
            yield f"type variable {node.type}"
    match node:
        case ir.Literal():
            yield from _literal(node)
        case ir.Binary():
            yield from _binary(node)
        case ir.Assign():
            yield from _equal(node.target.type, node.value.type)
        case ir.Declare(init=ir.Expr() as init):
            yield from _equal(node.variable.type, init.type)
        case ir.If():
            yield from _equal(BoolType(), node.cond.type)
        case ir.FunctionCall():
            yield from _args(node.function.params, node.args)
        case ir.ExternCall():
            yield from _args(node.params, node.args)
        case ir.ActionCall():
            yield from _args(node.action.params, node.args)
        case ir.UnitApply():
            assert node.instance.unit is not None
            yield from _args(node.instance.unit.params, node.args)
        case ir.Aggregate():
            yield from _aggregate(node)
        case ir.StackLiteral():
            assert isinstance(node.type, StackType)
            if len(node.elements) != node.type.size:
                yield "elements missing"
        case ir.FieldRef():
            assert isinstance(node.base.type, FieldsType)
            field = node.base.type.field(node.name)
            yield from [f"no field {node.name}"] if field is None else _equal(field.type, node.type)
        case ir.Slice():
            yield from _equal(BitType(node.hi - node.lo + 1), node.type)
        case ir.Concat():
            widths = [t.width for t in (node.left.type, node.right.type, node.type) if isinstance(t, BitType | IntType)]
            if len(widths) != 3 or widths[0] + widths[1] != widths[2]:
                yield f"widths {widths}"
        case ir.Mux():
            yield from _equal(node.yes.type, node.type)
            yield from _equal(node.no.type, node.type)
        case ir.Select():
            yield from (f"{len(c.matches)} matches" for c in node.cases if not _fits(c, node))
        case ir.Match(first=ir.Expr(), second=ir.Expr()):
            yield from _equal(node.first.type, node.second.type)  # type: ignore[union-attr] # matched above
        case ir.ActionValue():
            yield from _args(node.choice.action.data, node.data)


def _fits(case: ir.SelectCase, select: ir.Select) -> bool:
    return len(case.matches) == len(select.exprs) or case.matches[0].kind is ir.MatchValueKind.VALUE_SET


def _equal(wanted: Type, got: Type) -> Iterator[str]:
    if wanted != got:
        yield f"{got} where {wanted} is due"


def _args(params: tuple[ir.Param, ...], args: tuple[ir.Expr, ...]) -> Iterator[str]:
    if len(params) != len(args):
        yield f"{len(args)} arguments for {len(params)}"
    for param, arg in zip(params, args, strict=False):
        yield from _equal(param.type, arg.type)
        if param.direction in (ir.Direction.OUT, ir.Direction.INOUT) and not _is_place(arg):
            yield f"{param.name}: not an lvalue"


def _is_place(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.FieldRef | ir.Slice | ir.PlusSlice | ir.Index):
        return _is_place(expr.base)
    if isinstance(expr, ir.StackNext | ir.StackLast):
        return _is_place(expr.stack)
    return isinstance(expr, ir.VarRef | ir.DontCare)


def _literal(node: ir.Literal) -> Iterator[str]:
    if isinstance(node.type, BoolType):
        if not isinstance(node.value, bool):
            yield f"{node.value!r} is no bool"
    elif isinstance(node.type, StringType):
        if not isinstance(node.value, str):
            yield f"{node.value!r} is no string"
    elif isinstance(node.type, BitType | IntType | InfIntType | SerEnumType):
        if type(node.value) is not int or fold.wrap(node.value, node.type) != node.value:
            yield f"{node.value!r} is out of the range of {node.type}"
    else:
        yield f"a literal of type {node.type}"


def _binary(node: ir.Binary) -> Iterator[str]:
    left, right = node.left.type, node.right.type
    if node.op in ("<<", ">>"):
        yield from _equal(node.type, left)
        if not isinstance(right, BitType) and not (
            isinstance(right, InfIntType) and isinstance(node.right, ir.Literal)
        ):
            yield f"shift amount of type {right}"
        return
    yield from _equal(left, right)
    truth = node.op in ("==", "!=", "<", ">", "<=", ">=", "&&", "||")
    yield from _equal(BoolType() if truth else left, node.type)
    if isinstance(left, InfIntType | VoidType):
        yield f"operands of type {left}"


def _aggregate(node: ir.Aggregate) -> Iterator[str]:
    if isinstance(node.type, TupleType):
        types = node.type.elements
    else:
        assert isinstance(node.type, FieldsType)
        types = tuple(f.type for f in node.type.fields)
    if len(types) != len(node.members):
        yield "members missing"
    for type_, member in zip(types, node.members, strict=False):
        yield from _equal(type_, member.type)
