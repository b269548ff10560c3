"""Types as written become types; generic types are specialised; type variables are inferred and replaced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.context import Context
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal, shown
from catchment.softswitch.compiler.parser import parse_expressions
from catchment.softswitch.compiler.scope import ExternSymbol, GenericTypeSymbol, OpenSymbol, Scope, TypeSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    MAX_WIDTH,
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    ExternType,
    Field,
    FieldsType,
    HeaderType,
    InfIntType,
    IntType,
    ListType,
    MatchKindType,
    NewTypeName,
    SerEnumType,
    StackType,
    StringType,
    StructType,
    TupleType,
    Type,
    TypeVar,
    UnionType,
    VarbitType,
    VoidType,
)

MOST_ELEMENTS = 1 << 16
"""No array or stack has more elements, as no field is wider: memory for them is there for every packet."""

MAX_SIZE = (1 << 31) - 1
"""The largest size of a table, value set or object with an index: P4Info's are signed 32-bit numbers, some of 64."""

Bindings = dict[TypeVar, Type]
_SIMPLE: Mapping[str, Type] = {
    "bool": BoolType(),
    "error": ErrorType(),
    "string": StringType(),
    "void": VoidType(),
    "match_kind": MatchKindType(),
}
_CLASSES: Mapping[str, type[FieldsType]] = {"header": HeaderType, "struct": StructType, "header_union": UnionType}


class TypeChecker(Context, ABC):
    """Resolves and relates types."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._specialised: dict[tuple[int, tuple[Type, ...]], FieldsType] = {}
        self._generics: dict[str, GenericTypeSymbol] = {}

    @abstractmethod
    def constant_int(self, expr: ast.Expr, what: str, *, local: bool = False) -> int:
        """The value of an expression that must be a compile-time integer; `what` names it in the message."""

    def size(self, expr: ast.Expr, what: str) -> int:
        """How many entries or members something may have, a compile-time integer that P4Info can hold."""
        value = self.constant_int(expr, what)
        if not 0 <= value <= MAX_SIZE:
            raise Refusal(expr.loc, f"{shown(value)}: {what} is 0 to {MAX_SIZE}")
        return value

    # from syntax

    def resolve(self, written: ast.TypeExpr) -> Type:
        """The type that `written` means here."""
        if isinstance(written, ast.BaseType):
            return self._base(written)
        if isinstance(written, ast.NamedType):
            return self._named(written)
        if isinstance(written, ast.ArrayType):
            return self._stack(written)
        if isinstance(written, ast.TupleTypeExpr):
            return TupleType(tuple(self.resolve(e) for e in written.elements))
        if isinstance(written, ast.ListTypeExpr):
            return ListType(self.resolve(written.element))
        raise Refusal(written.loc, "`_` is no type here")

    def _base(self, written: ast.BaseType) -> Type:
        if written.name in _SIMPLE:
            return _SIMPLE[written.name]
        if written.width is None:
            if written.name == "varbit":
                raise Refusal(written.loc, "varbit needs a maximal width")
            return BitType(1) if written.name == "bit" else InfIntType()
        width = self.constant_int(written.width, "a width")
        if width < 0 or (width == 0 and written.name == "int"):
            raise Refusal(written.width.loc, f"{shown(width)}: invalid width of {written.name}<>")
        if width > MAX_WIDTH:
            raise Refusal(written.width.loc, f"{shown(width)}: widths beyond {MAX_WIDTH} bits are not supported")
        if written.name == "varbit":
            return VarbitType(width)
        return BitType(width) if written.name == "bit" else IntType(width)

    def _named(self, written: ast.NamedType) -> Type:
        symbol = self.lookup(written.name, written.loc, written.absolute)
        args = None if written.args is None else tuple(self.resolve(a) for a in written.args)
        if isinstance(symbol, TypeSymbol):
            if args is not None:
                raise Refusal(written.loc, f"{written.name}: this type takes no type arguments")
            return symbol.type
        if isinstance(symbol, GenericTypeSymbol):
            return self.specialise(symbol, args, written.loc)
        if isinstance(symbol, ExternSymbol):
            return self.extern_type(symbol, args, written.loc)
        raise Refusal(written.loc, f"{written.name}: is not a type that can be used here")

    def extern_type(self, symbol: ExternSymbol, args: tuple[Type, ...] | None, loc: Location) -> ExternType:
        """An extern's type with its arguments; all of them must be written."""
        wanted = len(symbol.decl.type_params)
        given = () if args is None else args
        if len(given) != wanted:
            raise Refusal(loc, f"{symbol.decl.name}: takes {wanted} type arguments, {len(given)} are given")
        return ExternType(symbol.decl.name, given, symbol)

    def _stack(self, written: ast.ArrayType) -> Type:
        element = self.resolve(written.element)
        size = self.constant_int(written.size, "the size of a header stack", local=True)
        refused = (InfIntType, StringType, VoidType, ExternType, MatchKindType, ListType, VarbitType)
        if isinstance(element, refused):
            raise Refusal(written.loc, f"an array of {element}: its elements cannot be of this type")
        if size < 0:
            raise Refusal(written.size.loc, f"{shown(size)}: a header stack cannot have a negative size")
        if size > MOST_ELEMENTS:
            raise Refusal(written.size.loc, f"{shown(size)} elements; an array has {MOST_ELEMENTS} at most")
        return StackType(element, size)

    # generic structs

    def declare_fields(self, decl: ast.FieldsDecl) -> None:
        """Declares a header, struct or union."""
        if decl.type_params:
            symbol = GenericTypeSymbol(decl.loc, decl, self.scope)
            self.scope.declare(decl.name, symbol)
            self._generics[decl.name] = symbol
            self._build(symbol, tuple(TypeVar(p.name) for p in decl.type_params))
        else:
            type_ = self._build(GenericTypeSymbol(decl.loc, decl, self.scope), ())
            self.scope.declare(decl.name, TypeSymbol(decl.loc, type_))

    def specialise(self, symbol: GenericTypeSymbol, args: tuple[Type, ...] | None, loc: Location) -> FieldsType:
        """The generic type with these arguments; the same object each time."""
        wanted, given = len(symbol.decl.type_params), 0 if args is None else len(args)
        if args is None or given != wanted:
            raise Refusal(loc, f"{symbol.decl.name}: takes {wanted} type arguments, {given} are given")
        key = (id(symbol.decl), args)
        if key not in self._specialised:
            self._specialised[key] = self._build(symbol, args)
        return self._specialised[key]

    def _build(self, symbol: GenericTypeSymbol, args: tuple[Type, ...]) -> FieldsType:
        decl = symbol.decl
        fields: list[Field] = []
        with self.scoped(symbol.scope):
            for param, arg in zip(decl.type_params, args, strict=True):
                self.scope.declare(param.name, TypeSymbol(param.loc, arg))
            if all(param.name != decl.name for param in decl.type_params):
                self.scope.declare(decl.name, OpenSymbol(decl.loc))
            for written in decl.fields:
                if any(written.name == f.name for f in fields):
                    raise Refusal(written.loc, f"{written.name}: duplicate field of {decl.name}")
                type_ = self.resolve(written.type)
                _check_field(decl, written, type_)
                fields.append(Field(written.name, type_, self._field_annotations(written), written.loc))
        if decl.kind == "header" and sum(isinstance(f.type, VarbitType) for f in fields) > 1:
            raise Refusal(decl.loc, f"{decl.name}: a header can have only one varbit field")
        name = f"{decl.name}<{', '.join(map(str, args))}>" if args else decl.name
        generic = decl.name if args else ""
        notes = lower_annotations(decl.annotations)
        type_ = _CLASSES[decl.kind](name, tuple(fields), notes, generic, args, decl.loc)
        if not any(has_variables(f.type) for f in fields) and not any(map(has_variables, args)):
            self.types.append(type_)
        return type_

    def _field_annotations(self, written: ast.FieldDecl) -> tuple[ir.Annotation, ...]:
        """A field's annotations; those of @field_list may be any compile-time integers."""
        notes = lower_annotations(written.annotations)
        for index, (note, syntax) in enumerate(zip(notes, written.annotations, strict=True)):
            if note.name == "field_list" and not note.structured:
                items = parse_expressions(syntax.tokens, syntax.loc)
                values = tuple(self.constant_int(item, "a field list") for item in items)
                notes = (*notes[:index], replace(note, values=values), *notes[index + 1 :])
        return notes

    def anonymous_struct(self, names: tuple[str, ...], types: tuple[Type, ...]) -> StructType:
        """The type of `{a = 1, b = 2}` where nothing names one."""
        fields = tuple(Field(n, t) for n, t in zip(names, types, strict=True))
        type_ = StructType(f"struct#{len(self.types)}", fields)
        self.types.append(type_)
        return type_

    # type variables

    def substitute(self, type_: Type, bindings: Bindings) -> Type:
        """`type_` with type variables replaced."""
        if not bindings or not has_variables(type_):
            return type_
        if isinstance(type_, TypeVar):
            return bindings.get(type_, type_)
        if isinstance(type_, TupleType):
            return TupleType(tuple(self.substitute(e, bindings) for e in type_.elements))
        if isinstance(type_, StackType):
            return StackType(self.substitute(type_.element, bindings), type_.size)
        if isinstance(type_, ExternType):
            args = tuple(self.substitute(a, bindings) for a in type_.type_args)
            return ExternType(type_.name, args, type_.declaration)
        if isinstance(type_, FieldsType) and type_.generic:
            args = tuple(self.substitute(a, bindings) for a in type_.type_args)
            symbol = self._generics[type_.generic]
            return self.specialise(symbol, args, symbol.loc)
        return type_

    def unify(self, formal: Type, actual: Type, bindings: Bindings) -> None:
        """Binds the variables of `formal` so that it becomes `actual` where it can; does not complain otherwise."""
        if isinstance(formal, TypeVar):
            if formal in bindings and not isinstance(bindings[formal], InfIntType):
                return
            if formal is not actual:
                bindings[formal] = actual
        elif isinstance(formal, TupleType) and isinstance(actual, TupleType):
            for f, a in zip(formal.elements, actual.elements, strict=False):
                self.unify(f, a, bindings)
        elif isinstance(formal, StackType) and isinstance(actual, StackType):
            self.unify(formal.element, actual.element, bindings)
        elif (isinstance(formal, ExternType) and isinstance(actual, ExternType) and formal.name == actual.name) or (
            isinstance(formal, FieldsType) and isinstance(actual, FieldsType) and formal.generic == actual.generic
        ):
            for f, a in zip(formal.type_args, actual.type_args, strict=False):
                self.unify(f, a, bindings)

    def child_scope(self, parent: Scope, params: tuple[ast.TypeParam, ...], args: tuple[Type, ...]) -> Scope:
        """A scope in which type parameters stand for `args`."""
        scope = Scope(parent)
        for param, arg in zip(params, args, strict=True):
            scope.declare(param.name, TypeSymbol(param.loc, arg))
        return scope

    # declarations of enums and names

    def declare_typedef(self, decl: ast.TypedefDecl) -> None:
        """Declares `typedef` and `type`."""
        type_ = self.resolve(decl.type)
        if decl.is_new:
            type_ = self._new_type(decl, type_)
        self.scope.declare(decl.name, TypeSymbol(decl.loc, type_))

    def _new_type(self, decl: ast.TypedefDecl, type_: Type) -> Type:
        name = NewTypeName(decl.name, lower_annotations(decl.annotations), type_)
        if isinstance(type_, BitType):
            return BitType(type_.width, name)
        if isinstance(type_, IntType):
            return IntType(type_.width, name)
        if isinstance(type_, BoolType):
            return BoolType(name)
        raise Refusal(decl.loc, f"{decl.name}: `type` of {type_} is not supported")

    def declare_names(self, decl: ast.NamesDecl) -> None:
        """Declares errors or match kinds."""
        for name, loc in decl.members:
            known = self.errors if decl.name == "error" else self.match_kinds
            if name in known:
                raise Refusal(loc, f"{name}: duplicate declaration in `{decl.name}`")
            if decl.name == "error":
                self.errors[name] = len(self.errors)
            else:
                self.match_kinds.add(name)

    def error_value(self, name: str, loc: Location) -> ir.EnumValue:
        """`error.name`."""
        if name not in self.errors:
            raise Refusal(loc, f"{name}: no such error", "declare it in an `error { ... }`")
        return ir.EnumValue(loc, ErrorType(), name, self.errors[name])


def _check_field(decl: ast.FieldsDecl, written: ast.FieldDecl, type_: Type) -> None:
    allowed: tuple[type[Type], ...]
    if decl.kind == "header_union":
        allowed = (HeaderType, TypeVar)
    elif decl.kind == "header":
        allowed = (BitType, IntType, BoolType, VarbitType, SerEnumType, StructType, TypeVar)
    else:
        refused = (InfIntType, StringType, VoidType, ExternType, MatchKindType, ListType)
        if isinstance(type_, refused):
            raise Refusal(written.loc, f"{written.name}: a struct cannot have a field of type {type_}")
        return
    if not isinstance(type_, allowed):
        what = "header union" if decl.kind == "header_union" else "header"
        raise Refusal(written.loc, f"{written.name}: a {what} cannot have a field of type {type_}")
    if isinstance(type_, StructType):
        for inner in type_.fields:
            if not isinstance(inner.type, BitType | IntType | BoolType | SerEnumType | StructType | TypeVar):
                raise Refusal(written.loc, f"{written.name}: a header cannot contain a field of type {inner.type}")


def has_variables(type_: Type) -> bool:
    """Whether any type variable occurs in `type_`."""
    if isinstance(type_, TypeVar):
        return True
    if isinstance(type_, TupleType):
        return any(map(has_variables, type_.elements))
    if isinstance(type_, StackType | ListType):
        return has_variables(type_.element)
    if isinstance(type_, ExternType | FieldsType):
        return any(map(has_variables, type_.type_args))
    return False


def has_widthless(type_: Type) -> bool:
    """Whether any `int` without width occurs in `type_`."""
    if isinstance(type_, InfIntType):
        return True
    if isinstance(type_, TupleType):
        return any(map(has_widthless, type_.elements))
    return isinstance(type_, StructType) and any(has_widthless(f.type) for f in type_.fields)


def is_equatable(type_: Type) -> bool:
    """Whether `==` is defined on values of `type_`."""
    return isinstance(
        type_,
        BitType
        | IntType
        | InfIntType
        | BoolType
        | VarbitType
        | EnumType
        | SerEnumType
        | ErrorType
        | StringType
        | FieldsType
        | StackType
        | TupleType
        | TypeVar,
    )
