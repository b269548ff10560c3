"""Values on the way to their type: literals, braces that wait for a type, implicit and explicit casts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from catchment.softswitch.compiler import fold, ir
from catchment.softswitch.compiler.check.typing import TypeChecker
from catchment.softswitch.compiler.diagnostics import Refusal, shown
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    FieldsType,
    HeaderType,
    InfIntType,
    IntType,
    ListType,
    NewTypeName,
    SerEnumType,
    StackType,
    StringType,
    StructType,
    TupleType,
    Type,
    UnionType,
    VoidType,
)


@dataclass(frozen=True, slots=True)
class BraceValue(ir.Expr):
    """`{a, b}` or `{x = a, y = b}` before its type is known; `names` is empty for the first.

    Never leaves the checker. With `bare` it is `...` without braces: a whole default value, which an invalid header is.
    """

    names: tuple[str, ...]
    members: tuple[ir.Expr, ...]
    dots: bool
    bare: bool = False


def is_constant(expr: ir.Expr) -> bool:
    """Whether the value is known at compile time."""
    if isinstance(expr, ir.Aggregate | BraceValue):
        return all(map(is_constant, expr.members))
    if isinstance(expr, ir.StackLiteral):
        return all(map(is_constant, expr.elements))
    return isinstance(expr, ir.Literal | ir.EnumValue | ir.InvalidHeader)


class ValueChecker(TypeChecker):
    """Brings values to a wanted type."""

    def fit(self, literal: ir.Literal, target: Type) -> ir.Literal:
        """An integer literal as a value of `target`; warns when it does not fit and is cut."""
        assert isinstance(literal.value, int), "only integers are fitted"
        value = fold.wrap(literal.value, target)
        if value != literal.value:
            if literal.value < 0 and isinstance(target, BitType):
                self.diagnostics.warn(
                    literal.loc, f"{shown(literal.value)}: negative value with unsigned type {target}"
                )
            else:
                self.diagnostics.warn(literal.loc, f"{shown(literal.value)}: value does not fit in {target}")
        return ir.Literal(literal.loc, target, value, literal.base)

    def convert(self, expr: ir.Expr, target: Type) -> ir.Expr:
        """`expr` as a value of `target`, by the implicit casts of the language; refuses what they do not cover."""
        converted = self._implicit(expr, target)
        if converted is None:
            raise Refusal(expr.loc, f"cannot implicitly cast from {describe(expr)} to {target}")
        return converted

    def _implicit(self, expr: ir.Expr, target: Type) -> ir.Expr | None:
        if isinstance(expr, BraceValue):
            return self._fill(expr, target)
        if isinstance(expr, ir.InvalidHeader) and isinstance(expr.type, VoidType):
            return ir.InvalidHeader(expr.loc, target) if isinstance(target, HeaderType | UnionType) else None
        if expr.type == target:
            return expr
        if isinstance(expr, ir.Mux):
            yes, no = self._implicit(expr.yes, target), self._implicit(expr.no, target)
            return None if yes is None or no is None else ir.Mux(expr.loc, target, expr.cond, yes, no)
        if isinstance(expr.type, InfIntType):
            return self._from_int(expr, target)
        if isinstance(target, InfIntType) and isinstance(expr, ir.Literal) and isinstance(expr.type, BitType | IntType):
            return ir.Literal(expr.loc, target, expr.value, expr.base)
        if isinstance(expr.type, SerEnumType) and expr.type.underlying == target:
            return self.cast(expr, target)
        if isinstance(expr, ir.Aggregate):
            return self._reshape(expr, target)
        return None

    def _from_int(self, expr: ir.Expr, target: Type) -> ir.Expr | None:
        if not isinstance(target, BitType | IntType):
            return None
        if isinstance(expr, ir.Literal):
            return self.fit(expr, target)
        return ir.Cast(expr.loc, target, expr)

    def _reshape(self, expr: ir.Aggregate, target: Type) -> ir.Expr | None:
        """A constant list or structure that was given a type of its own, as a value of another."""
        if isinstance(expr.type, TupleType):
            return self._fill(BraceValue(expr.loc, VoidType(), (), expr.members, dots=False), target)
        if isinstance(expr.type, StructType) and expr.type.name.startswith("struct#"):
            names = tuple(f.name for f in expr.type.fields)
            return self._fill(BraceValue(expr.loc, VoidType(), names, expr.members, dots=False), target)
        return None

    def _fill(self, braces: BraceValue, target: Type) -> ir.Expr | None:
        if braces.bare:
            return self.default(target, braces.loc)
        if isinstance(target, StructType | HeaderType):
            types = tuple(f.type for f in target.fields)
            if braces.names or (braces.dots and not braces.members):
                members = self._named_members(braces, target)
            else:
                members = self._listed_members(braces, types, target)
            return ir.Aggregate(
                braces.loc, target, members, source_order([f.name for f in target.fields], braces.names)
            )
        if braces.names:
            return None
        if isinstance(target, TupleType):
            return ir.Aggregate(braces.loc, target, self._listed_members(braces, target.elements, target))
        if isinstance(target, ListType):
            elements = (target.element,) * len(braces.members)
            return ir.Aggregate(braces.loc, TupleType(elements), self._listed_members(braces, elements, target))
        if isinstance(target, StackType):
            if len(braces.members) > target.size:
                raise Refusal(braces.loc, f"{len(braces.members)} elements for a stack of {target.size}")
            if len(braces.members) < target.size and not braces.dots:
                raise Refusal(braces.loc, f"{len(braces.members)} elements for a stack of {target.size}")
            members = tuple(self.convert(m, target.element) for m in braces.members)
            missing = target.size - len(members)
            return ir.StackLiteral(braces.loc, target, members + (self.default(target.element, braces.loc),) * missing)
        return None

    def _listed_members(self, braces: BraceValue, types: tuple[Type, ...], target: Type) -> tuple[ir.Expr, ...]:
        given, wanted = len(braces.members), len(types)
        if given > wanted or (given < wanted and not braces.dots):
            raise Refusal(braces.loc, f"{given} values for {wanted} members of {target}")
        members = tuple(self.convert(m, t) for m, t in zip(braces.members, types, strict=False))
        return members + tuple(self.default(t, braces.loc) for t in types[given:])

    def _named_members(self, braces: BraceValue, target: FieldsType) -> tuple[ir.Expr, ...]:
        given = dict(zip(braces.names, braces.members, strict=True))
        for name, value in given.items():
            if target.field(name) is None:
                raise Refusal(value.loc, f"{name}: {target} has no such field")
        members: list[ir.Expr] = []
        for field in target.fields:
            if field.name in given:
                members.append(self.convert(given[field.name], field.type))
            elif braces.dots:
                members.append(self.default(field.type, braces.loc))
            else:
                raise Refusal(braces.loc, f"{field.name}: no value for this field of {target}")
        return tuple(members)

    def default(self, type_: Type, loc: Location) -> ir.Expr:
        """The value that `...` stands for."""
        if isinstance(type_, BitType | IntType | SerEnumType):
            return ir.Literal(loc, type_, 0)
        if isinstance(type_, BoolType):
            return ir.Literal(loc, type_, False)
        if isinstance(type_, StringType):
            return ir.Literal(loc, type_, "")
        if isinstance(type_, EnumType):
            return ir.EnumValue(loc, type_, type_.members[0], 0)
        if isinstance(type_, ErrorType):
            return self.error_value("NoError", loc)
        if isinstance(type_, HeaderType | UnionType):
            return ir.InvalidHeader(loc, type_)
        if isinstance(type_, StructType):
            return ir.Aggregate(loc, type_, tuple(self.default(f.type, loc) for f in type_.fields))
        if isinstance(type_, TupleType):
            return ir.Aggregate(loc, type_, tuple(self.default(e, loc) for e in type_.elements))
        if isinstance(type_, StackType):
            return ir.StackLiteral(loc, type_, (self.default(type_.element, loc),) * type_.size)
        raise Refusal(loc, f"{type_} has no default value")

    def settle(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with a type of its own, where no type is wanted."""
        if not isinstance(expr, BraceValue):
            return expr
        if expr.dots:
            raise Refusal(expr.loc, "`...` needs a known type")
        members = tuple(self.settle(m) for m in expr.members)
        types = tuple(m.type for m in members)
        if expr.names:
            return ir.Aggregate(expr.loc, self.anonymous_struct(expr.names, types), members)
        return ir.Aggregate(expr.loc, TupleType(types), members)

    # explicit casts

    def cast(self, expr: ir.Expr, target: Type) -> ir.Expr:
        """`(target) expr`."""
        if isinstance(expr, BraceValue | ir.InvalidHeader):
            return self.convert(expr, target)
        if expr.type == target:
            return expr
        source, wanted = _strip(expr.type), _strip(target)
        if _are_unrelated(expr.type, target):
            name = _name_of(target) or _name_of(expr.type)
            assert name is not None, "one of them has a name"
            message = f"cannot cast from {expr.type} to {target}"
            raise Refusal(expr.loc, message, f"{name.name} is cast to and from {name.underlying}: cast to that first")
        if not _castable(source, wanted):
            converted = self._implicit(expr, target)
            if converted is None:
                raise Refusal(expr.loc, f"cannot cast from {expr.type} to {target}")
            return converted
        if isinstance(expr, ir.Literal) and isinstance(expr.value, int):
            if isinstance(wanted, BoolType):
                if expr.value not in (0, 1):
                    raise Refusal(expr.loc, f"{shown(expr.value)}: only 0 and 1 can be cast to bool")
                return ir.Literal(expr.loc, target, bool(expr.value))
            return ir.Literal(expr.loc, target, fold.wrap(int(expr.value), target))
        return ir.Cast(expr.loc, target, expr)


def source_order(declared: Sequence[str], given: Sequence[str]) -> tuple[int, ...]:
    """The indices of what is declared, those `given` first and in their order; empty when that changes nothing."""
    indices = [declared.index(name) for name in given]
    indices += [i for i in range(len(declared)) if i not in indices]
    return () if indices == sorted(indices) else tuple(indices)


def _strip(type_: Type) -> Type:
    """The type without `type` names and enum names."""
    if isinstance(type_, SerEnumType):
        type_ = type_.underlying
    if isinstance(type_, BitType | IntType | BoolType) and type_.newtype is not None:
        return replace(type_, newtype=None)
    return type_


def _name_of(type_: Type) -> NewTypeName | None:
    return type_.newtype if isinstance(type_, BitType | IntType | BoolType) else None


def _are_unrelated(source: Type, target: Type) -> bool:
    """Whether one was made by a `type` declaration, and neither from the other; `int` is cast to any."""
    one, other = _name_of(source), _name_of(target)
    if (one is None and other is None) or isinstance(source, InfIntType):
        return False
    return not ((one is not None and one.underlying == target) or (other is not None and other.underlying == source))


def _castable(source: Type, target: Type) -> bool:
    if source == target:
        return True
    if isinstance(target, BitType | IntType):
        if isinstance(source, BitType | IntType):
            return source.width == target.width or type(source) is type(target)
        if isinstance(source, BoolType):
            return isinstance(target, BitType) and target.width == 1
        return isinstance(source, InfIntType)
    if isinstance(target, BoolType):
        return isinstance(source, InfIntType) or source == BitType(1)
    return False


def describe(expr: ir.Expr) -> str:
    """What to call the type of an expression in a message."""
    if isinstance(expr, BraceValue):
        if expr.bare:
            return "`...`"
        return "a structure initialiser" if expr.names else "a list"
    if isinstance(expr, ir.InvalidHeader) and isinstance(expr.type, VoidType):
        return "an invalid header"
    return str(expr.type)
