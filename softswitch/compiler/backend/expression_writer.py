"""What every writer of expressions needs: values kept aside, places, and assignments to them."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend.effects import has_effects
from catchment.softswitch.compiler.backend.scope import Scope, variable_name
from catchment.softswitch.compiler.types import StackType, TupleType, Type, UnionType


@dataclass(frozen=True, slots=True)
class Kept(ir.Expr):
    """A value that has been computed already: `text` names it."""

    text: str


class ExpressionWriter(ABC):
    """Writes into the function of its scope; which C++ a node becomes is for the subclass to say."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    @abstractmethod
    def value(self, expr: ir.Expr) -> str:
        """A C++ expression for the value."""

    def values(self, exprs: Sequence[ir.Expr], order: Sequence[int] = ()) -> list[str]:
        """C++ expressions for the values, evaluated in `order`, or from left to right.

        One that something later might change is kept aside.
        """
        out = [""] * len(exprs)
        order = order or range(len(exprs))
        for i, at in enumerate(order):
            expr = exprs[at]
            text = self.value(expr)
            later = (exprs[other] for other in order[i + 1 :])
            if not isinstance(expr, ir.Literal | ir.EnumValue) and any(map(has_effects, later)):
                text = self.keep(expr.type, text, expr)
            out[at] = text
        return out

    def keep(self, t: Type, text: str, expr: ir.Expr) -> str:
        """Keeps the value of `text` in a new constant."""
        name = self.scope.temporary()
        self.scope.out.line(f"[[maybe_unused]] const {self.cpp(t, expr)} {name} = {text};")
        return name

    def freeze(self, target: ir.Expr) -> ir.Expr:
        """The lvalue with its indices computed now: which place it is does not change any more."""
        if isinstance(target, ir.Index | ir.PlusSlice):
            base = self.freeze(target.base)
            index = target.index if isinstance(target, ir.Index) else target.start
            if not isinstance(index, ir.Literal | Kept):
                index = Kept(index.loc, index.type, self.keep(index.type, self.value(index), index))
            if isinstance(target, ir.Index):
                return dataclasses.replace(target, base=base, index=index)
            return dataclasses.replace(target, base=base, start=index)
        if isinstance(target, ir.FieldRef | ir.Slice):
            return dataclasses.replace(target, base=self.freeze(target.base))
        return target

    def cpp(self, t: Type, node: ir.Node) -> str:
        return self.scope.program.types.cpp(t, node.loc)

    def width(self, t: Type) -> int:
        return self.scope.program.types.width(t)

    # Places -----------------------------------------------------------------------------------------------------------

    def place(self, expr: ir.Expr) -> str:
        """A C++ lvalue, or (of something that is no lvalue) a value whose members can be read."""
        if isinstance(expr, ir.VarRef):
            return variable_name(expr.variable)
        if isinstance(expr, ir.FieldRef):
            return f"{self.place(expr.base)}.{self.scope.program.types.member(expr.base.type, expr.name)}"
        if isinstance(expr, ir.Index):
            return self._element(expr)
        if isinstance(expr, ir.StackNext | ir.StackLast):
            stack = self.place(expr.stack)
            last = isinstance(expr, ir.StackLast)
            assert isinstance(expr.stack.type, StackType)
            empty = f"{stack}.next == 0" if last else f"{stack}.next >= {expr.stack.type.size}"
            self.scope.out.line(f"if ({empty}) {{ {self.scope.reject('StackOutOfBounds')} }}")
            return f"{stack}.e[{stack}.next{' - 1' if last else ''}]"
        return self.value(expr)

    def _element(self, expr: ir.Index) -> str:
        base = self.place(expr.base)
        if isinstance(expr.base.type, TupleType):
            assert isinstance(expr.index, ir.Literal)
            return f"{base}.f_{expr.index.value}"
        assert isinstance(expr.base.type, StackType)
        if isinstance(expr.index, ir.Literal) and 0 <= int(expr.index.value) < expr.base.type.size:
            return f"{base}.e[{expr.index.value}]"
        name = self.scope.temporary()
        self.scope.out.line(f"{self.cpp(expr.type, expr)} {name}{{}};")
        return f"element({base}, to_u64({self.value(expr.index)}), {name})"

    def assign(self, target: ir.Expr, value: str) -> None:
        """Writes `target = value;`."""
        out = self.scope.out
        if isinstance(target, ir.DontCare):
            out.line(f"static_cast<void>({value});")
            return
        if isinstance(target, ir.Slice):
            width = self.width(target.base.type)
            base = self.value(target.base)
            self.assign(target.base, f"with_slice<{width}, {target.hi}, {target.lo}>({base}, {value})")
            return
        if isinstance(target, ir.PlusSlice):
            width = self.width(target.base.type)
            base, start = self.values((target.base, target.start))
            self.assign(target.base, f"with_plus_slice<{width}, {target.width}>({base}, {start}, {value})")
            return
        if isinstance(target, ir.Cast):
            self.assign(target.operand, value)
            return
        place = self.place(target)
        out.line(f"{place} = {value};")
        self.after_write(target, place)

    def after_write(self, target: ir.Expr, place: str) -> None:
        """Keep a union's rule after one of its headers was written: when it is valid, the others are not."""
        if isinstance(target, ir.FieldRef) and isinstance(target.base.type, UnionType):
            member = self.scope.program.types.member(target.base.type, target.name)
            union = place[: -len(member) - 1]
            self.scope.out.line(f"if ({place}.valid) {union}.only_{member}();")
