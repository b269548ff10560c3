"""What happens to a packet, told step by step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ir


def text_of(expr: ir.Expr) -> str:  # noqa: PLR0912 - one branch per kind of expression
    """An lvalue or expression in P4's syntax, as short as it reads well."""
    match expr:
        case ir.Literal():
            return str(expr.value).lower() if isinstance(expr.value, bool) else str(expr.value)
        case ir.EnumValue():
            return f"{expr.type}.{expr.member}"
        case ir.VarRef():
            return expr.variable.name
        case ir.FieldRef():
            return f"{text_of(expr.base)}.{expr.name}"
        case ir.Index():
            return f"{text_of(expr.base)}[{text_of(expr.index)}]"
        case ir.StackNext():
            return f"{text_of(expr.stack)}.next"
        case ir.StackLast():
            return f"{text_of(expr.stack)}.last"
        case ir.StackLastIndex():
            return f"{text_of(expr.stack)}.lastIndex"
        case ir.Slice():
            return f"{text_of(expr.base)}[{expr.hi}:{expr.lo}]"
        case ir.PlusSlice():
            return f"{text_of(expr.base)}[{text_of(expr.start)} +: {expr.width}]"
        case ir.Unary():
            return f"{expr.op}{text_of(expr.operand)}"
        case ir.Binary():
            return f"({text_of(expr.left)} {expr.op} {text_of(expr.right)})"
        case ir.Concat():
            return f"({text_of(expr.left)} ++ {text_of(expr.right)})"
        case ir.Cast():
            return f"({expr.type}){text_of(expr.operand)}"
        case ir.Mux():
            return f"({text_of(expr.cond)} ? {text_of(expr.yes)} : {text_of(expr.no)})"
        case ir.Aggregate():
            return "{" + ", ".join(map(text_of, expr.members)) + "}"
        case ir.IsValid():
            return f"{text_of(expr.header)}.isValid()"
        case ir.TableApply():
            return f"{expr.table.name}.apply(){'.' + expr.result if expr.result else ''}"
        case ir.FunctionCall():
            return f"{expr.function.name}({', '.join(map(text_of, expr.args))})"
        case ir.ExternCall():
            target = f"{expr.target.name}." if expr.target is not None else ""
            return f"{target}{expr.method}({', '.join(map(text_of, expr.args))})"
        case ir.InvalidHeader():
            return "{#}"
        case ir.DontCare():
            return "_"
    return type(expr).__name__


@dataclass(slots=True)
class Trace:
    """Hands lines to `sink`, indented by how deep the calls are. Without a sink it is silent."""

    sink: Callable[[str], None] | None = None
    depth: int = field(default=0)

    @property
    def on(self) -> bool:
        """Whether lines go to a sink; ask before making a costly text."""
        return self.sink is not None

    def line(self, text: str, loc: object = None) -> None:
        if self.sink is not None:
            where = f"  [{loc}]" if loc is not None else ""
            self.sink("  " * self.depth + text + where)
