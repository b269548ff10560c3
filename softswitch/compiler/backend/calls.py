"""Calls: functions, actions, tables, sub-controls. Arguments go by reference where no two of them can overlap."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import externs
from catchment.softswitch.compiler.backend.effects import has_effects
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter
from catchment.softswitch.compiler.backend.scope import action_name, instance_name, table_name, unit_name
from catchment.softswitch.compiler.backend.text import identifier
from catchment.softswitch.compiler.types import ExternType, FieldsType, StackType, TupleType, UnionType

Path = tuple[object, ...]


def path(expr: ir.Expr) -> Path | None:
    """The place of an lvalue: its variable, then fields. None if it has no address that a reference could take."""
    if isinstance(expr, ir.VarRef):
        return (id(expr.variable),)
    if isinstance(expr, ir.FieldRef):
        base = path(expr.base)
        return None if base is None else (*base, expr.name)
    if isinstance(expr, ir.Index) and isinstance(expr.index, ir.Literal):
        base = path(expr.base)
        return None if base is None else (*base, expr.index.value)
    return None


def overlap(a: Path, b: Path) -> bool:
    shared = min(len(a), len(b))
    return a[:shared] == b[:shared]


def _in_union(expr: ir.Expr) -> bool:
    while isinstance(expr, ir.FieldRef | ir.Index):
        if isinstance(expr.base.type, UnionType):
            return True
        expr = expr.base
    return False


def is_big(t: object) -> bool:
    """Whether a type is passed by reference even to `in` parameters."""
    return isinstance(t, FieldsType | StackType | TupleType)


class Arguments:
    """The C++ arguments of one call, and the copies back that follow it."""

    def __init__(
        self,
        ex: ExpressionWriter,
        params: Sequence[ir.Param],
        args: Sequence[ir.Expr],
        order: Sequence[int] = (),
        *,
        by_reference: bool,
    ) -> None:
        self._ex = ex
        self._copies: list[tuple[ir.Expr, str]] = []
        written = [path(a) for p, a in zip(params, args, strict=True) if p.direction.name in ("OUT", "INOUT")]
        self._cleared: list[str] = []
        order = order or range(len(args))
        texts = {}
        for i, at in enumerate(order):
            param, arg = params[at], args[at]
            # What a later argument may change has to be taken now.
            stays = by_reference and not any(has_effects(args[later]) for later in order[i + 1 :])
            if isinstance(param.type, ExternType):
                texts[at] = ex.value(arg)
            elif param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
                texts[at] = self._written(param, arg, written, stays)
            else:
                texts[at] = self._read(param, arg, written, stays)
        self.texts = [texts[at] for at in range(len(args))]
        # `out` parameters begin as zero, but only when all arguments have been read.
        for line in self._cleared:
            ex.scope.out.line(line)

    def _written(self, param: ir.Param, arg: ir.Expr, written: list[Path | None], by_reference: bool) -> str:
        ex = self._ex
        arg = ex.freeze(arg)
        place = path(arg)
        alone = place is not None and sum(1 for w in written if w is None or overlap(place, w)) == 1
        if by_reference and alone and not _in_union(arg):
            text = ex.place(arg)
            if param.direction is ir.Direction.OUT:
                self._cleared.append(f"{text} = {ex.cpp(param.type, arg)}{{}};")
            return text
        name = ex.scope.temporary()
        initial = f" = {ex.value(arg)}" if param.direction is ir.Direction.INOUT else "{}"
        ex.scope.out.line(f"{ex.cpp(param.type, arg)} {name}{initial};")
        self._copies.append((arg, name))
        return name

    def _read(self, param: ir.Param, arg: ir.Expr, written: list[Path | None], by_reference: bool) -> str:
        ex = self._ex
        text = ex.value(arg)
        place = path(arg)
        shared = place is None or any(w is None or overlap(place, w) for w in written)
        literal = isinstance(arg, ir.Literal | ir.EnumValue)
        if (not is_big(param.type) and literal) or (by_reference and not shared and not literal):
            return text
        return ex.keep(param.type, text, arg)

    def copy_back(self) -> None:
        for target, name in self._copies:
            self._ex.assign(target, name)


def _leave_on_exit(ex: ExpressionWriter, exited: str) -> None:
    ex.scope.out.line(f"if ({exited}) return true;")


def function(ex: ExpressionWriter, call: ir.FunctionCall) -> str:
    """A P4 function. Returns its value, if it has one."""
    arguments = Arguments(ex, call.function.params, call.args, call.order, by_reference=True)
    text = f"fn_{identifier(call.function.unique)}({', '.join(['pkt', *arguments.texts])})"
    name = ""
    if str(call.type) == "void":
        ex.scope.out.line(f"{text};")
    else:
        name = ex.keep(call.type, text, call)
    arguments.copy_back()
    return name


def action(ex: ExpressionWriter, call: ir.ActionCall) -> None:
    """A direct call; an action sees the control's variables, so that nothing goes by reference."""
    arguments = Arguments(ex, call.action.params, call.args, call.order, by_reference=False)
    text = f"{action_name(call.action)}({', '.join(arguments.texts)})"
    if not ex.scope.program.exits.action(call.action):
        ex.scope.out.line(f"{text};")
        arguments.copy_back()
        return
    exited = ex.scope.temporary()
    ex.scope.out.line(f"const bool {exited} = {text};")
    arguments.copy_back()
    _leave_on_exit(ex, exited)


def applied(ex: ExpressionWriter, table_: ir.Table) -> str:
    """Applies a table; gives the name of the Applied record."""
    name = ex.scope.temporary()
    ex.scope.out.line(f"[[maybe_unused]] const Applied {name} = {table_name(table_)}();")
    if ex.scope.program.exits.table(table_):
        _leave_on_exit(ex, f"{name}.exited")
    return name


def table(ex: ExpressionWriter, call: ir.TableApply) -> str:
    """`t.apply()`, its `.hit` or `.miss`."""
    name = applied(ex, call.table)
    return {"": "", "hit": f"{name}.hit", "miss": f"!{name}.hit"}[call.result]


def unit(ex: ExpressionWriter, call: ir.UnitApply) -> None:
    """A sub-control or sub-parser."""
    instance = call.instance
    assert instance.unit is not None
    arguments = Arguments(ex, instance.unit.params, call.args, call.order, by_reference=True)
    sub = ex.scope.temporary()
    members = ["pkt", instance_name(instance)]
    if isinstance(instance.unit, ir.ParserUnit):
        members.append("error")
    out = ex.scope.out
    out.line(f"{unit_name(instance.unit)} {sub}{{{', '.join(members + arguments.texts)}}};")
    if isinstance(instance.unit, ir.ParserUnit):
        rejected = ex.scope.temporary()
        out.line(f"const bool {rejected} = {sub}.run();")
        arguments.copy_back()
        ex.scope.rejects[0] = True
        out.line(f"if ({rejected}) goto reject;")
    elif ex.scope.program.exits.unit(instance.unit):
        exited = ex.scope.temporary()
        out.line(f"const bool {exited} = {sub}.run();")
        arguments.copy_back()
        _leave_on_exit(ex, exited)
    else:
        out.line(f"{sub}.run();")
        arguments.copy_back()


def extern(ex: ExpressionWriter, call: ir.ExternCall) -> str:
    """An extern function or method."""
    return externs.call(ex, call)
