"""Instances: constructor arguments, and the specialised unit each instance is one of."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.context import Place, annotation_name
from catchment.softswitch.compiler.check.tables import TableChecker
from catchment.softswitch.compiler.check.typing import has_variables
from catchment.softswitch.compiler.check.values import is_constant
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal, shown
from catchment.softswitch.compiler.scope import (
    BlockSymbol,
    ExternSymbol,
    InstanceSymbol,
    PackageSymbol,
    Symbol,
    TypeSymbol,
)
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import BitType, ExternType, InfIntType, Type, TypeVar

Unit = ir.ControlUnit | ir.ParserUnit

MOST_INSTANCES = 1 << 16
"""Instances in one, itself included: a tree of more is refused before it is made, as it may double with each level."""


@dataclass(slots=True)
class Frame:
    """What the unit being checked has declared so far."""

    instances: list[ir.InstanceDecl] = field(default_factory=list)
    locals: list[ir.Declare] = field(default_factory=list)
    actions: list[ir.Action] = field(default_factory=list)
    tables: list[ir.Table] = field(default_factory=list)
    value_sets: list[ir.ValueSet] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ConstructorArgs:
    """Evaluated constructor arguments: values in parameter order, and extern instances by parameter name."""

    values: tuple[ir.Expr, ...] = ()
    instances: tuple[tuple[str, ir.InstanceDecl], ...] = ()

    def key(self) -> tuple[object, ...]:
        """What tells two specialisations apart: values and units of instances; the program tree says which."""
        return (*map(_value_key, self.values), *(id(decl.unit) for _, decl in self.instances))

    @property
    def known(self) -> bool:
        """Whether every value is a constant (inside a unit not yet specialised, some are not)."""
        return all(map(is_constant, self.values))


def _value_key(value: ir.Expr) -> object:
    if isinstance(value, ir.Literal):
        return (value.type, type(value.value), value.value)
    if isinstance(value, ir.EnumValue):
        return (value.type, value.ordinal)
    if isinstance(value, ir.Aggregate):
        return (value.type, tuple(_value_key(m) for m in value.members))
    return id(value)


class InstanceChecker(TableChecker):
    """Declares instances."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self.frame = Frame()
        self.bound_instances: dict[ir.InstanceDecl, tuple[tuple[str, ir.InstanceDecl], ...]] = {}
        """Instance -> the extern instances given to its constructor, by parameter name."""
        self._tree_sizes: dict[Unit, int] = {}

    @abstractmethod
    def specialised_unit(self, symbol: BlockSymbol, args: ConstructorArgs | None, loc: Location) -> Unit:
        """The unit of a block with these constructor arguments; None for one whose parameters stay open."""

    def instantiation(self, written: ast.Instantiation) -> ir.InstanceDecl:
        """Checks and declares an instance."""
        notes = lower_annotations(written.annotations)
        decl = self.make_instance(written.name, written.type, written.args, written.loc, notes=notes)
        self.scope.declare(written.name, InstanceSymbol(written.loc, decl))
        self.frame.instances.append(decl)
        return decl

    def make_instance(
        self,
        name: str,
        type_: ast.TypeExpr,
        args: tuple[ast.Argument, ...],
        loc: Location,
        *,
        notes: tuple[ir.Annotation, ...] = (),
        wanted: tuple[Type, ...] = (),
    ) -> ir.InstanceDecl:
        """An instance, not yet declared under a name.

        `wanted` are the types its parameters will be given, for inferring type arguments that are not written.
        """
        symbol = self._instantiable(type_)
        cp_name = annotation_name(notes, name)
        is_global = self.place is Place.TOP
        if isinstance(symbol, BlockSymbol):
            self._check_nesting(symbol, loc)
            symbol = self._bound_block(symbol, type_, wanted)
            values = self.constructor_args(symbol, args, loc)
            unit = self.specialised_unit(symbol, values if values.known else None, loc)
            self._check_tree_size(unit, loc)
            decl = ir.InstanceDecl(loc, name, cp_name, unit, None, values.values, notes, is_global=is_global)
            self.bound_instances[decl] = values.instances
            return decl
        extern, constructor = self._extern_constructor(symbol, type_, args, loc)
        return ir.InstanceDecl(loc, name, cp_name, None, extern, constructor, notes, is_global=is_global)

    def _bound_block(self, symbol: BlockSymbol, type_: ast.TypeExpr, wanted: tuple[Type, ...]) -> BlockSymbol:
        """A generic control or parser with its type arguments, written or inferred."""
        decl = symbol.decl
        written = type_.args if isinstance(type_, ast.NamedType) and type_.args is not None else ()
        variables = tuple(TypeVar(p.name) for p in decl.type_params)
        if written and len(written) != len(variables):
            message = f"{decl.name}: takes {len(variables)} type arguments, {len(written)} are given"
            raise Refusal(type_.loc, message)
        if not variables:
            return symbol
        bindings = {
            v: self.resolve(w) for v, w in zip(variables, written, strict=False) if not isinstance(w, ast.DontCareType)
        }
        with self.scoped(self.child_scope(symbol.scope, decl.type_params, variables)):
            for param, given in zip(self.lower_params(decl.params, declare=False), wanted, strict=False):
                if not has_variables(given):
                    self.unify(param.type, given, bindings)
        missing = next((v for v in variables if v not in bindings), None)
        if missing is not None:
            raise Refusal(
                type_.loc, f"{decl.name}: cannot infer the type argument `{missing.name}`", "write it in <...>"
            )
        args = tuple(bindings[v] for v in variables)
        return BlockSymbol(symbol.loc, decl, self.child_scope(symbol.scope, decl.type_params, args), args)

    def _instantiable(self, type_: ast.TypeExpr) -> BlockSymbol | ExternSymbol:
        symbol: Symbol | None = None
        if isinstance(type_, ast.NamedType):
            symbol = self.lookup(type_.name, type_.loc, type_.absolute)
        if isinstance(symbol, TypeSymbol) and isinstance(symbol.type, ExternType):
            symbol = symbol.type.declaration
        if isinstance(symbol, PackageSymbol):
            raise Refusal(type_.loc, f"{symbol.decl.name}: a package can only be instantiated as main")
        if not isinstance(symbol, BlockSymbol | ExternSymbol):
            raise Refusal(type_.loc, "only controls, parsers, externs and packages can be instantiated")
        has_body = isinstance(symbol, ExternSymbol) or (
            symbol.decl.body is not None if isinstance(symbol.decl, ast.ControlDecl) else symbol.decl.states is not None
        )
        if not has_body:
            raise Refusal(type_.loc, f"{symbol.decl.name}: is the type of a block, it has no body to instantiate")
        return symbol

    def _check_tree_size(self, unit: Unit, loc: Location) -> None:
        size = self._tree_size(unit)
        if size > MOST_INSTANCES:
            found = f"{unit.name}: an instance of it is {size} instances with those in it"
            raise Refusal(
                loc,
                f"{found}; {MOST_INSTANCES} is the most",
                "instantiate what it has in it once, and apply that several times",
            )

    def _tree_size(self, unit: Unit) -> int:
        """The instances that one of the unit makes, itself included: its children's are known before."""
        size = self._tree_sizes.get(unit)
        if size is None:
            made = [child.unit for child in unit.instances if not child.alias]
            size = self._tree_sizes[unit] = 1 + sum(1 if below is None else self._tree_size(below) for below in made)
        return size

    def _check_nesting(self, symbol: BlockSymbol, loc: Location) -> None:
        is_parser = isinstance(symbol.decl, ast.ParserDecl)
        if is_parser and self.place in (Place.CONTROL, Place.TABLE):
            raise Refusal(loc, f"{symbol.decl.name}: a parser cannot be instantiated in a control")
        if not is_parser and self.place is Place.PARSER:
            raise Refusal(loc, f"{symbol.decl.name}: a control cannot be instantiated in a parser")

    def constructor_args(self, symbol: BlockSymbol, args: tuple[ast.Argument, ...], loc: Location) -> ConstructorArgs:
        """The constructor arguments of a control or parser."""
        decl = symbol.decl
        aligned = self.align(decl.constructor_params, args, loc, decl.name)
        values: list[ir.Expr] = []
        instances: list[tuple[str, ir.InstanceDecl]] = []
        for param, arg in zip(decl.constructor_params, aligned, strict=True):
            type_ = self.constructor_param(symbol, param)
            given = arg.value if arg is not None else param.default
            if given is None:
                raise Refusal(loc, f"{decl.name}: missing argument for parameter `{param.name}`")
            if isinstance(type_, ExternType | BlockSymbol):
                instances.append((param.name, self._instance_argument(given, type_)))
            else:
                values.append(self._constant_argument(given, type_, param.name))
        return ConstructorArgs(tuple(values), tuple(instances))

    def constructor_param(self, symbol: BlockSymbol, param: ast.Parameter) -> Type | BlockSymbol:
        """The type of a constructor parameter: a value's, an extern's, or that of a control or parser."""
        if param.direction:
            raise Refusal(param.loc, f"{param.name}: a constructor parameter cannot have a direction")
        if isinstance(param.type, ast.NamedType) and param.type.args is None:
            block = symbol.scope.find(param.type.name)
            if isinstance(block, BlockSymbol):
                return block
        with self.scoped(symbol.scope):
            return self.resolve(param.type)

    def _constant_argument(self, written: ast.Expr, type_: Type, name: str) -> ir.Expr:
        value = self.value(written, type_)
        if not self.is_late_constant(value):
            raise Refusal(written.loc, f"{name}: the argument must be a compile-time constant")
        return value

    def _instance_argument(self, written: ast.Expr, type_: ExternType | BlockSymbol) -> ir.InstanceDecl:
        symbol = self.lookup(written.name, written.loc, written.absolute) if isinstance(written, ast.Name) else None
        if isinstance(type_, BlockSymbol):
            if not isinstance(symbol, InstanceSymbol) or symbol.decl.unit is None:
                raise Refusal(
                    written.loc, f"the argument must be an instance of {type_.decl.name}", "declare it before"
                )
            self._check_block_type(symbol.decl.unit, type_, written.loc)
            return symbol.decl
        if isinstance(symbol, InstanceSymbol) and symbol.decl.type == type_:
            return symbol.decl
        raise Refusal(written.loc, f"the argument must be an instance of {type_}", "declare it before")

    def block_type_params(self, symbol: BlockSymbol) -> tuple[ir.Param, ...]:
        """The parameters of a control or parser type."""
        with self.scoped(symbol.scope):
            return self.lower_params(symbol.decl.params, declare=False)

    def _check_block_type(self, unit: Unit, symbol: BlockSymbol, loc: Location) -> None:
        wanted = self.block_type_params(symbol)
        kind = ir.ControlUnit if isinstance(symbol.decl, ast.ControlDecl) else ir.ParserUnit
        mine = [(p.type, p.direction) for p in unit.params]
        if not isinstance(unit, kind) or mine != [(p.type, p.direction) for p in wanted]:
            raise Refusal(loc, f"{unit.name}: its parameters are not those of {symbol.decl.name}")

    def _extern_constructor(
        self, symbol: ExternSymbol, type_: ast.TypeExpr, args: tuple[ast.Argument, ...], loc: Location
    ) -> tuple[ExternType, tuple[ir.Expr, ...]]:
        extern = self.resolve(type_)
        assert isinstance(extern, ExternType), "an extern symbol resolves to an extern type"
        constructors = [m for m in symbol.decl.methods if m.result is None]
        if not constructors:
            raise Refusal(loc, f"{symbol.decl.name}: has no constructor")
        fitting = [m for m in constructors if len(m.params) == len(args)] or constructors
        refusal: Refusal | None = None
        for decl in fitting:
            try:
                return extern, self._constructor_values(symbol, extern, decl, args, loc)
            except Refusal as reason:
                refusal = refusal or reason
        assert refusal is not None, "every constructor was tried"
        raise refusal

    def _constructor_values(
        self,
        symbol: ExternSymbol,
        extern: ExternType,
        decl: ast.FunctionDecl,
        args: tuple[ast.Argument, ...],
        loc: Location,
    ) -> tuple[ir.Expr, ...]:
        aligned = self.align(decl.params, args, loc, symbol.decl.name)
        with self.scoped(self.child_scope(symbol.scope, symbol.decl.type_params, extern.type_args)):
            params = self.lower_params(decl.params, declare=False)
        for param, arg in zip(params, aligned, strict=True):
            if param.name == "size" and arg is not None and arg.value is not None:
                self._check_size(symbol.decl.name, param.type, arg.value)
        return self.bind(params, decl.params, aligned, loc, constants=True)

    def _check_size(self, extern: str, type_: Type, written: ast.Expr) -> None:
        """Refuses a number that would be cut to the width of the size: an object of another size would be made."""
        size = self.expr(written)
        if not isinstance(size, ir.Literal) or not isinstance(size.type, InfIntType) or not isinstance(type_, BitType):
            return
        most = (1 << type_.width) - 1
        if not 0 <= int(size.value) <= most:
            raise Refusal(written.loc, f"{shown(int(size.value))}: the size of {extern} is a {type_}: 0 to {most}")

    def property_instance(
        self, call: ast.Call, types: tuple[str, ...], written: ast.PropertyDecl, table: ast.TableDecl
    ) -> ir.InstanceDecl:
        """An object made in a table's property itself: it goes by the table's name."""
        assert isinstance(call.callee, ast.TypeName), "a constructor call"
        notes = lower_annotations(table.annotations)
        name = f"{table.name}.{written.name}"
        made = self.make_instance(name, call.callee.type, call.args, call.loc)
        if made.type is None or made.type.name not in types:
            raise Refusal(call.loc, f"{written.name}: the value must be a {' or '.join(types)}")
        own = lower_annotations(written.annotations)
        cp_name = annotation_name(own, "")
        cp_name = f".{cp_name.removeprefix('.')}" if cp_name else annotation_name(notes, table.name)
        decl = ir.InstanceDecl(call.loc, name, cp_name, None, made.type, made.args, own)
        self.frame.instances.append(decl)
        return decl

    def direct_instance(self, symbol: BlockSymbol, call: ast.Call) -> ir.InstanceDecl:
        """The nameless instance that `Type.apply(...)` stands for."""
        name = symbol.decl.name
        used = {i.name for i in self.frame.instances}
        unique = next(c for c in (f"{name}_inst{n or ''}" for n in range(len(used) + 1)) if c not in used)
        notes = (ir.Annotation("name", (name,)),)
        base = call.callee.base if isinstance(call.callee, ast.Member) else None
        args = base.type.args if isinstance(base, ast.TypeName) and isinstance(base.type, ast.NamedType) else None
        type_ = ast.NamedType(call.callee.loc, name, False, args)
        decl = self.make_instance(unique, type_, (), call.loc, notes=notes)
        self.frame.instances.append(decl)
        return decl
