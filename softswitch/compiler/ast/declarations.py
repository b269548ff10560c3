"""Declarations as written; `loc` is the name's place."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler.ast.expressions import Annotation, Argument, Expr, Node, TypeExpr
from catchment.softswitch.compiler.ast.statements import Block, Stmt
from catchment.softswitch.compiler.source import Location


@dataclass(frozen=True, slots=True, eq=False)
class Decl(Stmt):
    """Anything with a name."""

    name: str
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class VarDecl(Decl):
    """`type name = init;`."""

    type: TypeExpr
    init: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class ConstDecl(Decl):
    """`const type name = init;`."""

    type: TypeExpr
    init: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Parameter(Decl):
    """`direction type name = default`; direction is "", "in", "out" or "inout"."""

    direction: str
    type: TypeExpr
    default: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Instantiation(Decl):
    """`type(args) name = { initializer };`."""

    type: TypeExpr
    args: tuple[Argument, ...]
    initializer: tuple[Decl, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class TypeParam(Decl):
    """`T` in `<T>`."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionDecl(Decl):
    """`result name<type_params>(params) body`; body None for an extern function, method or abstract method.

    A constructor of an extern has `result` None.
    """

    result: TypeExpr | None
    type_params: tuple[TypeParam, ...]
    params: tuple[Parameter, ...]
    body: Block | None
    abstract: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ExternDecl(Decl):
    """`extern name<type_params> { methods }`."""

    type_params: tuple[TypeParam, ...]
    methods: tuple[FunctionDecl, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FieldDecl(Decl):
    """A member of a header, struct or union."""

    type: TypeExpr


@dataclass(frozen=True, slots=True, eq=False)
class FieldsDecl(Decl):
    """`kind name<type_params> { fields }`, kind "header", "struct" or "header_union"."""

    kind: str
    type_params: tuple[TypeParam, ...]
    fields: tuple[FieldDecl, ...]


@dataclass(frozen=True, slots=True, eq=False)
class EnumMember(Decl):
    """A member of an enum, with its value in a serializable one."""

    value: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class EnumDecl(Decl):
    """`enum underlying name { members }`."""

    underlying: TypeExpr | None
    members: tuple[EnumMember, ...]


@dataclass(frozen=True, slots=True, eq=False)
class NamesDecl(Decl):
    """`error { ... }` or `match_kind { ... }`; `name` says which."""

    members: tuple[tuple[str, Location], ...]


@dataclass(frozen=True, slots=True, eq=False)
class TypedefDecl(Decl):
    """`typedef type name;`, or `type type name;` if `is_new`."""

    type: TypeExpr
    is_new: bool


@dataclass(frozen=True, slots=True, eq=False)
class ActionDecl(Decl):
    """`action name(params) body`."""

    params: tuple[Parameter, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class KeyDecl(Node):
    """`expr : match_kind annotations;`."""

    expr: Expr
    kind: str
    kind_loc: Location
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ActionRef(Node):
    """An action in an action list, entry or default: `name` or `name(args)`; args None when no parentheses stand."""

    name: str
    absolute: bool
    args: tuple[Argument, ...] | None
    annotations: tuple[Annotation, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class EntryDecl(Node):
    """`const priority=p: (keys) : action;`."""

    keys: tuple[Expr, ...]
    action: ActionRef
    priority: Expr | None
    is_const: bool
    annotations: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PropertyDecl(Decl):
    """`const name = value;` of a table, other than key, actions, entries. `value` is an `Expr`."""

    value: Expr
    is_const: bool


@dataclass(frozen=True, slots=True, eq=False)
class EntriesDecl(Node):
    """`const entries = { ... }`."""

    entries: tuple[EntryDecl, ...]
    is_const: bool


@dataclass(frozen=True, slots=True, eq=False)
class TableDecl(Decl):
    """`table name { ... }`. `keys`, `actions` None when the property is absent."""

    keys: tuple[KeyDecl, ...] | None
    actions: tuple[ActionRef, ...] | None
    entries: EntriesDecl | None
    properties: tuple[PropertyDecl, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ControlDecl(Decl):
    """`control name<..>(params)(constructor_params) { locals apply body }`; body None for a type declaration."""

    type_params: tuple[TypeParam, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Decl, ...]
    body: Block | None


@dataclass(frozen=True, slots=True, eq=False)
class ValueSetDecl(Decl):
    """`value_set<type>(size) name;`."""

    type: TypeExpr
    size: Expr


@dataclass(frozen=True, slots=True, eq=False)
class SelectCaseDecl(Node):
    """`keys : next;`."""

    keys: tuple[Expr, ...]
    next_state: str
    next_loc: Location


@dataclass(frozen=True, slots=True, eq=False)
class SelectDecl(Node):
    """`select (exprs) { cases }`."""

    exprs: tuple[Expr, ...]
    cases: tuple[SelectCaseDecl, ...]


@dataclass(frozen=True, slots=True, eq=False)
class GotoDecl(Node):
    """`transition name;`."""

    next_state: str


@dataclass(frozen=True, slots=True, eq=False)
class StateDecl(Decl):
    """`state name { body transition }`; transition None rejects."""

    body: tuple[Stmt, ...]
    transition: SelectDecl | GotoDecl | None


@dataclass(frozen=True, slots=True, eq=False)
class ParserDecl(Decl):
    """`parser name<..>(params)(constructor_params) { locals states }`; states None for a type declaration."""

    type_params: tuple[TypeParam, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Decl, ...]
    states: tuple[StateDecl, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class PackageDecl(Decl):
    """`package name<..>(params);`."""

    type_params: tuple[TypeParam, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ProgramDecl(Node):
    """All top-level declarations, in order."""

    declarations: tuple[Decl, ...]
