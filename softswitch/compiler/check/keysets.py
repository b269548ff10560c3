"""Key sets: what select cases and table entries match."""

from __future__ import annotations

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.statements import StatementChecker
from catchment.softswitch.compiler.check.values import BraceValue, describe
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.scope import ValueSetSymbol
from catchment.softswitch.compiler.types import (
    BitType,
    EnumType,
    ErrorType,
    IntType,
    SerEnumType,
    StructType,
    TupleType,
    Type,
)

Shape = tuple["Shape", ...] | None
"""How the scalars of a selector are nested: None for one that is a scalar itself."""


class KeysetChecker(StatementChecker):
    """Checks key sets against the types they are matched with."""

    def keyset(self, written: ast.Expr, type_: Type) -> ir.Match:
        """One component, matched with a value of `type_`."""
        loc = written.loc
        if isinstance(written, ast.Anything):
            return ir.Match(loc, ir.MatchValueKind.ANY)
        if isinstance(written, ast.MaskSet):
            if not isinstance(type_, BitType | IntType | SerEnumType):
                raise Refusal(loc, f"`&&&` is not defined on {type_}")
            plain = type_.underlying if isinstance(type_, SerEnumType) else type_
            value, mask = self._known(written.value, plain), self._known(written.mask, plain)
            return ir.Match(loc, ir.MatchValueKind.MASK, value, mask)
        if isinstance(written, ast.RangeSet):
            if not isinstance(type_, BitType | IntType | SerEnumType):
                raise Refusal(loc, f"`..` is not defined on {type_}")
            plain = type_.underlying if isinstance(type_, SerEnumType) else type_
            return self._range(written, self._known(written.low, plain), self._known(written.high, plain))
        if isinstance(written, ast.Name):
            symbol = self.scope.find(written.name)
            if isinstance(symbol, ValueSetSymbol):
                return self._value_set(written, symbol.value_set, type_)
        return ir.Match(loc, ir.MatchValueKind.EXACT, self._known(written, type_))

    def _known(self, written: ast.Expr, type_: Type) -> ir.Expr:
        raw = self.expr(written)
        if isinstance(raw.type, SerEnumType) and raw.type != type_:
            raw = self.cast(raw, raw.type.underlying)
        if isinstance(type_, SerEnumType) and raw.type == type_.underlying:
            raise Refusal(written.loc, f"cannot implicitly cast from {describe(raw)} to {type_}")
        value = self.convert(raw, type_)
        if not self.is_late_constant(value):
            raise Refusal(written.loc, "a key must be a compile-time constant here")
        return value

    def _range(self, written: ast.RangeSet, low: ir.Expr, high: ir.Expr) -> ir.Match:
        if isinstance(low, ir.Literal) and isinstance(high, ir.Literal) and int(low.value) > int(high.value):
            self.diagnostics.warn(written.loc, "the range is empty: its first value is greater than its last")
        return ir.Match(written.loc, ir.MatchValueKind.RANGE, low, high)

    def _value_set(self, written: ast.Name, value_set: ir.ValueSet, type_: Type) -> ir.Match:
        element = value_set.element
        inner = _flat(element) if isinstance(element, StructType | TupleType) else ()
        wanted = type_.elements if isinstance(type_, TupleType) else (type_,)
        plain = tuple(t.underlying if isinstance(t, SerEnumType) else t for t in wanted)
        if element != type_ and inner not in (wanted, plain) and (element,) not in (wanted, plain):
            raise Refusal(written.loc, f"{written.name}: a value set of {element} cannot match {type_}")
        return ir.Match(written.loc, ir.MatchValueKind.VALUE_SET, value_set=value_set)

    def select(self, written: ast.SelectDecl, states: set[str]) -> ir.Select:
        """`select (...) {...}`."""
        exprs: list[ir.Expr] = []
        shapes: list[Shape] = []
        for w in written.exprs:
            shape, scalars = self._selectors(self.expr(w))
            shapes.append(shape)
            exprs += scalars
        cases = []
        for case in written.cases:
            if case.next_state not in states:
                raise Refusal(case.next_loc, f"{case.next_state}: no such state")
            cases.append(ir.SelectCase(case.loc, self._labels(case, exprs, tuple(shapes)), case.next_state))
        return ir.Select(written.loc, tuple(exprs), tuple(cases))

    def _selectors(self, value: ir.Expr) -> tuple[Shape, list[ir.Expr]]:
        """How a selector is nested, and its scalars: of a list its members, of a struct its fields."""
        members: list[ir.Expr] = []
        if isinstance(value, BraceValue) and not value.names:
            members = list(value.members)
        elif isinstance(value.type, StructType):
            members = [ir.FieldRef(value.loc, f.type, value, f.name) for f in value.type.fields]
        else:
            return None, [self._selector(value)]
        inner = [self._selectors(member) for member in members]
        return tuple(shape for shape, _ in inner), [scalar for _, scalars in inner for scalar in scalars]

    def _selector(self, value: ir.Expr) -> ir.Expr:
        if isinstance(value.type, BitType | IntType | EnumType | SerEnumType | ErrorType) or str(value.type) == "bool":
            return value
        raise Refusal(
            value.loc, f"select on a value of type {describe(value)}", "select on bit, int, bool, enum or error"
        )

    def _labels(
        self, case: ast.SelectCaseDecl, exprs: list[ir.Expr], shapes: tuple[Shape, ...]
    ) -> tuple[ir.Match, ...]:
        keys = case.keys
        if len(keys) == 1 and isinstance(keys[0], ast.Anything):
            return tuple(ir.Match(keys[0].loc, ir.MatchValueKind.ANY) for _ in exprs)
        if len(keys) == 1 and len(exprs) > 1 and isinstance(keys[0], ast.Name):
            symbol = self.scope.find(keys[0].name)
            if isinstance(symbol, ValueSetSymbol):
                return (self._value_set(keys[0], symbol.value_set, TupleType(tuple(e.type for e in exprs))),)
        keys = _spread(keys, shapes)
        if len(keys) != len(exprs):
            raise Refusal(case.loc, f"a label of {len(keys)} values for {len(exprs)} selectors")
        return tuple(self.keyset(k, e.type) for k, e in zip(keys, exprs, strict=True))


def _spread(keys: tuple[ast.Expr, ...], shapes: tuple[Shape, ...]) -> tuple[ast.Expr, ...]:
    """A label's values for single scalars: nested lists one by one; `_` for a nested selector fits all in it."""
    if len(keys) != len(shapes):
        return tuple(item for key in keys for item in _items(key))
    spread: list[ast.Expr] = []
    for key, shape in zip(keys, shapes, strict=True):
        if shape is None:
            spread += _items(key)
        elif isinstance(key, ast.Anything):
            spread += [key] * _scalars(shape)
        else:
            spread += _spread(key.items, shape) if isinstance(key, ast.ListExpr) else (key,)
    return tuple(spread)


def _scalars(shape: Shape) -> int:
    return 1 if shape is None else sum(map(_scalars, shape))


def _items(key: ast.Expr) -> tuple[ast.Expr, ...]:
    """A nested list in a label, as its members in order."""
    return tuple(i for item in key.items for i in _items(item)) if isinstance(key, ast.ListExpr) else (key,)


def _flat(type_: Type) -> tuple[Type, ...]:
    """The scalar types in a struct or tuple, in order."""
    if isinstance(type_, StructType):
        return tuple(t for f in type_.fields for t in _flat(f.type))
    if isinstance(type_, TupleType):
        return tuple(t for e in type_.elements for t in _flat(e))
    return (type_,)
