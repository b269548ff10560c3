"""Expressions to C++. What an expression does besides having a value is written as statements before its use."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import calls
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expression_writer import ExpressionWriter, Kept
from catchment.softswitch.compiler.backend.scope import instance_name, variable_name
from catchment.softswitch.compiler.backend.text import Writer, bits_literal
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    FieldsType,
    HeaderType,
    InfIntType,
    IntType,
    SerEnumType,
    TupleType,
    Type,
    UnionType,
)

_ARITHMETIC = {"+": "add", "-": "sub", "*": "mul", "&": "and_", "|": "or_", "^": "xor_"}
# Each as less(first, second): whether the operands change places, and whether the answer is negated.
_COMPARISONS = {"<": (False, False), ">": (True, False), ">=": (False, True), "<=": (True, True)}


def is_signed(t: Type) -> bool:
    return isinstance(t, IntType) or (isinstance(t, SerEnumType) and isinstance(t.underlying, IntType))


class Expressions(ExpressionWriter):
    """Writes the expressions of one function."""

    def value(self, expr: ir.Expr) -> str:
        method = getattr(self, f"_{type(expr).__name__}", None)
        if method is None:
            raise unsupported(expr.loc, f"expression {type(expr).__name__}")
        return str(method(expr))

    def _Kept(self, expr: Kept) -> str:  # noqa: N802 - named after the node
        return expr.text

    def _Literal(self, expr: ir.Literal) -> str:  # noqa: N802 - named after the node
        if isinstance(expr.value, bool):
            return "true" if expr.value else "false"
        if isinstance(expr.value, str):
            raise unsupported(expr.loc, "a string value")
        if isinstance(expr.type, InfIntType) and not -(2**63) <= expr.value < 2**64:
            raise unsupported(expr.loc, "an integer of more than 64 bits without a width")
        return bits_literal(expr.value, self.width(expr.type))

    def _EnumValue(self, expr: ir.EnumValue) -> str:  # noqa: N802
        return bits_literal(expr.ordinal, self.width(expr.type))

    def _VarRef(self, expr: ir.VarRef) -> str:  # noqa: N802
        return variable_name(expr.variable)

    def _InstanceRef(self, expr: ir.InstanceRef) -> str:  # noqa: N802
        return instance_name(expr.instance)

    def _FieldRef(self, expr: ir.FieldRef) -> str:  # noqa: N802
        return self.place(expr)

    def _Index(self, expr: ir.Index) -> str:  # noqa: N802
        return self.place(expr)

    def _StackNext(self, expr: ir.StackNext) -> str:  # noqa: N802
        return self.place(expr)

    def _StackLast(self, expr: ir.StackLast) -> str:  # noqa: N802
        return self.place(expr)

    def _StackLastIndex(self, expr: ir.StackLastIndex) -> str:  # noqa: N802
        return f"sub<32>({self.place(expr.stack)}.next, 1U)"

    def _Slice(self, expr: ir.Slice) -> str:  # noqa: N802
        return f"slice<{expr.hi}, {expr.lo}>({self.value(expr.base)})"

    def _PlusSlice(self, expr: ir.PlusSlice) -> str:  # noqa: N802
        base, start = self.values((expr.base, expr.start))
        return f"plus_slice<{self.width(expr.base.type)}, {expr.width}>({base}, {start})"

    def _Unary(self, expr: ir.Unary) -> str:  # noqa: N802
        value = self.value(expr.operand)
        if expr.op == "!":
            return f"!({value})"
        name = {"-": "neg", "~": "inv"}[expr.op]
        return f"{name}<{self.width(expr.type)}>({value})"

    def _Binary(self, expr: ir.Binary) -> str:  # noqa: N802
        if expr.op in ("&&", "||"):
            return self._lazy(expr)
        left, right = self.values((expr.left, expr.right))
        width = self.width(expr.type)
        signed = is_signed(expr.left.type)
        if expr.op in ("==", "!="):
            equal = f"equal({left}, {right})"
            return equal if expr.op == "==" else f"!{equal}"
        if expr.op in _COMPARISONS:
            swap, negate = _COMPARISONS[expr.op]
            first, second = (right, left) if swap else (left, right)
            name = f"less_{'s' if signed else 'u'}<{self.width(expr.left.type)}>"
            return f"{'!' if negate else ''}{name}({first}, {second})"
        if expr.op in _ARITHMETIC:
            return f"{_ARITHMETIC[expr.op]}<{width}>({left}, {right})"
        if expr.op in ("|+|", "|-|"):
            return f"sat_{'add' if expr.op == '|+|' else 'sub'}_{'s' if signed else 'u'}<{width}>({left}, {right})"
        if expr.op in ("<<", ">>"):
            name = "shl" if expr.op == "<<" else "sar" if signed else "shr"
            return f"{name}<{width}>({left}, {right})"
        if expr.op in ("/", "%") and not signed:
            return f"{'div' if expr.op == '/' else 'mod'}<{width}>({left}, {right})"
        raise unsupported(expr.loc, f"operator {expr.op} on {expr.left.type}")

    def _lazy(self, expr: ir.Binary) -> str:
        left = self.value(expr.left)
        body = Writer()
        right = Expressions(self.scope.nested(body)).value(expr.right)
        if not body.lines:
            return f"({left} {expr.op} {right})"
        name = self.scope.temporary()
        self.scope.out.line(f"bool {name} = {left};")
        with self.scope.out.block(f"if ({name if expr.op == '&&' else '!' + name})"):
            self.scope.out.extend(body)
            self.scope.out.line(f"{name} = {right};")
        return name

    def _Mux(self, expr: ir.Mux) -> str:  # noqa: N802
        cond = self.value(expr.cond)
        yes_body, no_body = Writer(), Writer()
        yes = Expressions(self.scope.nested(yes_body)).value(expr.yes)
        no = Expressions(self.scope.nested(no_body)).value(expr.no)
        cpp = self.cpp(expr.type, expr)
        if not yes_body.lines and not no_body.lines:
            return f"static_cast<{cpp}>({cond} ? {yes} : {no})"
        name = self.scope.temporary()
        out = self.scope.out
        out.line(f"{cpp} {name}{{}};")
        with out.block(f"if ({cond})"):
            out.extend(yes_body)
            out.line(f"{name} = {yes};")
        with out.block("else"):
            out.extend(no_body)
            out.line(f"{name} = {no};")
        return name

    def _Concat(self, expr: ir.Concat) -> str:  # noqa: N802
        left, right = self.values((expr.left, expr.right))
        return f"concat<{self.width(expr.left.type)}, {self.width(expr.right.type)}>({left}, {right})"

    def _Cast(self, expr: ir.Cast) -> str:  # noqa: N802
        value = self.value(expr.operand)
        source, target = expr.operand.type, expr.type
        if isinstance(target, BoolType):
            return value if isinstance(source, BoolType) else f"({value} != 0)"
        scalar = (BitType, IntType, SerEnumType, InfIntType, EnumType, ErrorType)
        if isinstance(source, BoolType) and isinstance(target, scalar):
            return f"bits<{self.width(target)}>({value} ? 1 : 0)"
        if not isinstance(source, scalar) or not isinstance(target, scalar):
            if source is target or source == target:
                return value
            raise unsupported(expr.loc, f"a cast from {source} to {target}")
        wide, narrow = self.width(target), self.width(source)
        if wide == narrow:
            return value
        if wide > narrow and is_signed(source):
            return f"sign_extend<{wide}, {narrow}>({value})"
        return f"resize<{wide}>({value})"

    def _Aggregate(self, expr: ir.Aggregate) -> str:  # noqa: N802
        values = self.values(expr.members, expr.order)
        name = self.scope.temporary()
        out = self.scope.out
        out.line(f"{self.cpp(expr.type, expr)} {name}{{}};")
        if isinstance(expr.type, HeaderType):
            out.line(f"{name}.valid = true;")
        if isinstance(expr.type, TupleType):
            members = [f"f_{i}" for i in range(len(values))]
        else:
            assert isinstance(expr.type, FieldsType)
            members = [self.scope.program.types.member(expr.type, f.name) for f in expr.type.fields]
        for member, value in zip(members, values, strict=True):
            out.line(f"{name}.{member} = {value};")
        return name

    def _StackLiteral(self, expr: ir.StackLiteral) -> str:  # noqa: N802
        values = self.values(expr.elements)
        name = self.scope.temporary()
        self.scope.out.line(f"{self.cpp(expr.type, expr)} {name}{{}};")
        for i, value in enumerate(values):
            self.scope.out.line(f"{name}.e[{i}] = {value};")
        return name

    def _InvalidHeader(self, expr: ir.InvalidHeader) -> str:  # noqa: N802
        return f"{self.cpp(expr.type, expr)}{{}}"

    def _IsValid(self, expr: ir.IsValid) -> str:  # noqa: N802
        place = self.value(expr.header)
        return f"{place}.is_valid()" if isinstance(expr.header.type, UnionType) else f"{place}.valid"

    def _FunctionCall(self, expr: ir.FunctionCall) -> str:  # noqa: N802
        return calls.function(self, expr)

    def _ExternCall(self, expr: ir.ExternCall) -> str:  # noqa: N802
        return calls.extern(self, expr)

    def _TableApply(self, expr: ir.TableApply) -> str:  # noqa: N802
        return calls.table(self, expr)
