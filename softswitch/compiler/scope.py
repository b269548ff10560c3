"""What names mean: symbols, and the scopes that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import Type


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A declared thing; `loc` is where."""

    loc: Location


@dataclass(frozen=True, slots=True, eq=False)
class TypeSymbol(Symbol):
    """A type without parameters, or a type variable."""

    type: Type


@dataclass(frozen=True, slots=True, eq=False)
class GenericTypeSymbol(Symbol):
    """A header, struct or union with type parameters."""

    decl: ast.FieldsDecl
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class ExternSymbol(Symbol):
    """An extern object type."""

    decl: ast.ExternDecl
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class BlockSymbol(Symbol):
    """A control or parser, or the type of one (no body).

    With `type_args`, `scope` binds its type parameters to them.
    """

    decl: ast.ControlDecl | ast.ParserDecl
    scope: Scope
    type_args: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PackageSymbol(Symbol):
    """A package type."""

    decl: ast.PackageDecl
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class VariableSymbol(Symbol):
    """A variable or parameter."""

    variable: ir.Variable


@dataclass(frozen=True, slots=True, eq=False)
class ConstantSymbol(Symbol):
    """A compile-time value."""

    value: ir.Expr


@dataclass(frozen=True, slots=True, eq=False)
class FunctionSymbol(Symbol):
    """Functions and extern functions of one name, told apart by their parameters."""

    overloads: list[ast.FunctionDecl]
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class ActionSymbol(Symbol):
    """An action."""

    action: ir.Action


@dataclass(frozen=True, slots=True, eq=False)
class TableSymbol(Symbol):
    """A table."""

    table: ir.Table


@dataclass(frozen=True, slots=True, eq=False)
class InstanceSymbol(Symbol):
    """An instance of an extern, control or parser."""

    decl: ir.InstanceDecl


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetSymbol(Symbol):
    """A parser value set."""

    value_set: ir.ValueSet


@dataclass(frozen=True, slots=True, eq=False)
class OpenSymbol(Symbol):
    """A table or generic type whose declaration has not ended: it cannot name itself."""


@dataclass(frozen=True, slots=True, eq=False)
class PoisonSymbol(Symbol):
    """A name whose declaration was refused: uses of it are passed over in silence."""


@dataclass(slots=True, eq=False)
class Scope:
    """Names declared so far in one block, and the block around it."""

    parent: Scope | None = None
    names: dict[str, Symbol] = field(default_factory=dict)

    def find(self, name: str) -> Symbol | None:
        """The innermost meaning of `name`, or None."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None

    def declare(self, name: str, symbol: Symbol) -> None:
        """Adds a name; refuses one that this very scope has already."""
        earlier = self.names.get(name)
        if earlier is not None:
            raise Refusal(symbol.loc, f"{name}: duplicate declaration", f"it is declared at {earlier.loc} already")
        self.names[name] = symbol

    def root(self) -> Scope:
        """The outermost scope, where `.name` is looked up."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope
