"""What every part of the checker shares: diagnostics, scopes, names, and where in a program the checker is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.diagnostics import Diagnostics, FollowUp, Refusal
from catchment.softswitch.compiler.scope import ConstantSymbol, OpenSymbol, PoisonSymbol, Scope, Symbol, VariableSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import EnumType, FieldsType, SerEnumType, Type


class Place(Enum):
    """The kind of code being checked: it decides what may be called there."""

    TOP = "the top level"
    PARSER = "a parser"
    CONTROL = "a control"
    ACTION = "an action"
    FUNCTION = "a function"
    TABLE = "a table"


@dataclass(slots=True)
class UnitState:
    """Names given out in the unit being checked."""

    used: set[str] = field(default_factory=set)

    def unique(self, name: str) -> str:
        """An identifier like `name` that this unit has not used."""
        base = re.sub(r"\W", "_", name)
        candidate, count = base, 0
        while candidate in self.used:
            count += 1
            candidate = f"{base}_{count}"
        self.used.add(candidate)
        return candidate


class Context:
    """The state of a check."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self.diagnostics = diagnostics
        self.globals = Scope()
        self.scope = self.globals
        self.place = Place.TOP
        self.unit = UnitState()
        self.loops = 0
        self.return_type: Type | None = None
        """The result's type inside a function; None elsewhere."""
        self.errors: dict[str, int] = {}
        self.match_kinds: set[str] = set()
        self.types: list[FieldsType] = []
        """Every header, struct and union without type variables, in the order of completion."""
        self.enums: list[EnumType | SerEnumType] = []
        self.functions: list[ir.Function] = []
        self.constructor_params: set[ir.Variable] = set()
        """Parameters whose value is known when a unit is instantiated, so they may stand where constants do."""

    @contextmanager
    def scoped(self, parent: Scope | None = None) -> Iterator[Scope]:
        """A new innermost scope, below `parent` or the present one."""
        outer = self.scope
        self.scope = Scope(parent if parent is not None else outer)
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def within(self, place: Place, return_type: Type | None = None, unit: UnitState | None = None) -> Iterator[None]:
        """Checks code of another kind for a while."""
        saved = self.place, self.return_type, self.unit, self.loops
        self.place, self.return_type, self.loops = place, return_type, 0
        if unit is not None:
            self.unit = unit
        try:
            yield
        finally:
            self.place, self.return_type, self.unit, self.loops = saved

    def lookup(self, name: str, loc: Location, absolute: bool = False) -> Symbol:
        """The symbol of a name; refuses one that is not declared."""
        symbol = (self.scope.root() if absolute else self.scope).find(name)
        if symbol is None:
            raise Refusal(loc, f"{name}: declaration not found", self._suggestion(name))
        if isinstance(symbol, OpenSymbol):
            raise Refusal(loc, f"{name}: names itself in its own declaration", f"it begins at {symbol.loc}")
        if isinstance(symbol, PoisonSymbol):
            raise FollowUp(loc, f"{name}: its declaration was refused")
        return symbol

    def _suggestion(self, name: str) -> str:
        scope: Scope | None = self.scope
        while scope is not None:
            for known in scope.names:
                if known.lower() == name.lower() or (
                    len(name) > 3 and abs(len(known) - len(name)) <= 1 and _near(known, name)
                ):
                    return f"did you mean `{known}`?"
            scope = scope.parent
        return "declare it before it is used"

    def declare_variable(self, variable: ir.Variable) -> None:
        """Adds a variable or parameter to the innermost scope."""
        self.scope.declare(variable.name, VariableSymbol(variable.loc, variable))

    def declare_constant(self, name: str, loc: Location, value: ir.Expr) -> None:
        """Adds a constant to the innermost scope."""
        self.scope.declare(name, ConstantSymbol(loc, value))


def _near(one: str, other: str) -> bool:
    """Whether one edit turns one word into the other."""
    short, long = sorted((one, other), key=len)
    if len(short) == len(long):
        return sum(a != b for a, b in zip(short, long, strict=True)) == 1
    return any(long[:i] + long[i + 1 :] == short for i in range(len(long)))


def annotation_name(annotations: tuple[ir.Annotation, ...], default: str) -> str:
    """The control-plane name: what `@name("...")` says, or `default`."""
    for annotation in annotations:
        if annotation.name == "name" and annotation.values and isinstance(annotation.values[0], str):
            return annotation.values[0]
    return default
