"""The program: top-level declarations in order, `main`, and the tree of instances."""

from __future__ import annotations

from catchment.softswitch.compiler import ast, fold, ir
from catchment.softswitch.compiler.check import v1model
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.typing import Bindings
from catchment.softswitch.compiler.check.units import UnitChecker
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal, refuse_deep, shown
from catchment.softswitch.compiler.scope import (
    BlockSymbol,
    ExternSymbol,
    FunctionSymbol,
    InstanceSymbol,
    PackageSymbol,
    PoisonSymbol,
    TypeSymbol,
)
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    EnumType,
    HeaderType,
    IntType,
    SerEnumType,
    StructType,
    Type,
    TypeVar,
    UnionType,
)

ARCHITECTURES = {"V1Switch": "v1model"}

_Made = ir.Instance | ir.ExternInstance


class ProgramChecker(UnitChecker):
    """Checks a whole program."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._main: tuple[PackageSymbol, dict[str, ir.InstanceDecl], tuple[ir.Annotation, ...]] | None = None
        self._global_actions: list[ir.Action] = []
        self._end = Location("", 1, 1)

    def program(self, written: ast.ProgramDecl) -> ir.Program:
        """Checks every declaration. Raises `CompileError` with all errors found."""
        self._end = written.loc
        for decl in written.declarations:
            try:
                with refuse_deep(decl.loc, earlier=self.diagnostics.errors):
                    self._declare(decl)
            except Refusal as refusal:
                self.diagnostics.add(refusal)
                self.globals.names.setdefault(decl.name, PoisonSymbol(decl.loc))
            self._end = decl.loc
        self.diagnostics.raise_if_errors()
        if self._main is None:
            self.diagnostics.error(self._end, "the program has no `main`", "end it with: V1Switch(...) main;")
            self.diagnostics.raise_if_errors()
        with refuse_deep(self._end, "instances are"):
            program = self._assemble()
            v1model.check_program(program, self.diagnostics)
        self.diagnostics.raise_if_errors()
        return program

    def _declare(self, decl: ast.Decl) -> None:  # noqa: PLR0912 - one line per kind of declaration
        match decl:
            case ast.ConstDecl():
                self.constant(decl)
            case ast.TypedefDecl():
                self.declare_typedef(decl)
            case ast.FieldsDecl():
                self.declare_fields(decl)
            case ast.EnumDecl():
                self._enum(decl)
            case ast.NamesDecl():
                self.declare_names(decl)
            case ast.ExternDecl():
                self._extern(decl)
            case ast.FunctionDecl():
                self._function_declaration(decl)
            case ast.ActionDecl():
                self._global_actions.append(self.action(decl, is_global=True))
            case ast.ControlDecl() | ast.ParserDecl():
                self.declare_block(decl)
            case ast.PackageDecl():
                self.refuse_shared_names(decl.type_params, decl.params)
                self.globals.declare(decl.name, PackageSymbol(decl.loc, decl, self.globals))
            case ast.Instantiation():
                self._instantiation(decl)
            case ast.VarDecl():
                raise Refusal(decl.loc, f"{decl.name}: a variable cannot be declared at the top level")
            case _:
                raise Refusal(decl.loc, f"{decl.name}: cannot be declared at the top level")

    # types and functions

    def _enum(self, decl: ast.EnumDecl) -> None:
        names = [m.name for m in decl.members]
        for index, member in enumerate(decl.members):
            if member.name in names[:index]:
                raise Refusal(member.loc, f"{member.name}: duplicate declaration in enum {decl.name}")
        notes = lower_annotations(decl.annotations)
        type_: EnumType | SerEnumType
        if decl.underlying is None:
            for member in decl.members:
                if member.value is not None:
                    message = f"{member.name}: a value needs an enum with an underlying type"
                    raise Refusal(member.loc, message, f"enum bit<8> {decl.name} {{ ... }}")
            if not decl.members:
                raise Refusal(decl.loc, f"{decl.name}: an enum needs members")
            type_ = EnumType(decl.name, tuple(names), notes)
            self.scope.declare(decl.name, TypeSymbol(decl.loc, type_))
        else:
            type_ = self._serializable(decl, notes)
        self.enums.append(type_)

    def _serializable(self, decl: ast.EnumDecl, notes: tuple[ir.Annotation, ...]) -> SerEnumType:
        assert decl.underlying is not None, "only serializable enums come here"
        underlying = self.resolve(decl.underlying)
        if not isinstance(underlying, BitType | IntType) or underlying.newtype is not None:
            raise Refusal(decl.underlying.loc, f"{decl.name}: an enum cannot have underlying type {underlying}")
        members: list[tuple[str, int]] = []
        with self.scoped():
            for member in decl.members:
                if member.value is None:
                    raise Refusal(member.loc, f"{member.name}: a member of a serializable enum needs a value")
                given = self.expr(member.value)
                value = self.convert(given, underlying)
                if isinstance(given, ir.Literal) and isinstance(value, ir.Literal) and given.value != value.value:
                    message = f"{member.name}: the value {shown(int(given.value))} is out of bounds of {underlying}"
                    raise Refusal(member.value.loc, message)
                if not isinstance(value, ir.Literal):
                    raise Refusal(member.value.loc, f"{member.name}: the value must be a compile-time constant")
                members.append((member.name, fold.wrap(int(value.value), underlying)))
                self.declare_constant(member.name, member.loc, value)
        type_ = SerEnumType(decl.name, underlying, tuple(members), notes)
        self.scope.declare(decl.name, TypeSymbol(decl.loc, type_))
        return type_

    def _extern(self, decl: ast.ExternDecl) -> None:
        symbol = ExternSymbol(decl.loc, decl, self.globals)
        self.globals.declare(decl.name, symbol)
        for index, method in enumerate(decl.methods):
            self.refuse_shared_names(method.type_params, method.params)
            names = [p.name for p in method.params]
            others = [m for m in decl.methods[:index] if m.name == method.name and [p.name for p in m.params] == names]
            if method.name == decl.name and method.result is not None:
                raise Refusal(method.loc, f"{method.name}: a constructor has no return type")
            if method.result is None and others:
                raise Refusal(method.loc, f"{method.name}: duplicate constructor", f"see {others[0].loc}")
            if method.abstract:
                raise Refusal(method.loc, f"{method.name}: abstract methods are not supported")
        variables = tuple(TypeVar(p.name) for p in decl.type_params)
        for method in decl.methods:
            own = tuple(TypeVar(p.name) for p in method.type_params)
            outer = self.child_scope(self.globals, decl.type_params, variables)
            with self.scoped(self.child_scope(outer, method.type_params, own)):
                self.lower_params(method.params, declare=False)
                if method.result is not None:
                    self.resolve(method.result)

    def _function_declaration(self, decl: ast.FunctionDecl) -> None:
        self.refuse_shared_names(decl.type_params, decl.params)
        earlier = self.globals.names.get(decl.name)
        if isinstance(earlier, FunctionSymbol):
            for other in earlier.overloads:
                if [p.name for p in other.params] == [p.name for p in decl.params]:
                    message = f"{decl.name}: duplicate declaration"
                    raise Refusal(decl.loc, message, f"it is declared at {other.loc} already")
            earlier.overloads.append(decl)
        else:
            self.globals.declare(decl.name, FunctionSymbol(decl.loc, [decl], self.globals))
        variables = tuple(TypeVar(p.name) for p in decl.type_params)
        if decl.body is not None and not decl.type_params:
            self.specialised_function(decl, self.globals, ())
        elif decl.body is not None:
            self._build_function(decl, self.globals, variables)
        else:
            with self.scoped(self.child_scope(self.globals, decl.type_params, variables)):
                self.lower_params(decl.params, declare=False)

    # main

    def _instantiation(self, decl: ast.Instantiation) -> None:
        symbol = self.globals.find(decl.type.name) if isinstance(decl.type, ast.NamedType) else None
        if not isinstance(symbol, PackageSymbol):
            if isinstance(symbol, BlockSymbol):
                raise Refusal(decl.loc, f"{decl.name}: a control or parser cannot be instantiated at the top level")
            self.instantiation(decl)
            return
        if decl.name != "main":
            raise Refusal(decl.loc, f"{decl.name}: packages other than `main` are not supported")
        if self._main is not None:
            raise Refusal(decl.loc, "main: duplicate declaration")
        if symbol.decl.name not in ARCHITECTURES:
            message = f"{symbol.decl.name}: this architecture is not supported"
            raise Refusal(decl.loc, message, f"supported packages: {', '.join(ARCHITECTURES)}")
        v1model.check_package(symbol.decl)
        blocks = self._package_args(symbol, decl)
        v1model.check_blocks(symbol.decl, blocks)
        self._main = symbol, blocks, lower_annotations(decl.annotations)

    def _package_args(self, symbol: PackageSymbol, decl: ast.Instantiation) -> dict[str, ir.InstanceDecl]:
        package = symbol.decl
        variables = tuple(TypeVar(p.name) for p in package.type_params)
        bindings: Bindings = {}
        if isinstance(decl.type, ast.NamedType) and decl.type.args is not None:
            if len(decl.type.args) != len(variables):
                raise Refusal(decl.loc, f"{package.name}: takes {len(variables)} type arguments")
            for variable, written in zip(variables, decl.type.args, strict=True):
                if not isinstance(written, ast.DontCareType):
                    bindings[variable] = self.resolve(written)
        instances: dict[str, ir.InstanceDecl] = {}
        for param, arg in zip(
            package.params, self.align(package.params, decl.args, decl.loc, package.name), strict=True
        ):
            if arg is None or arg.value is None:
                raise Refusal(decl.loc, f"{package.name}: missing argument for parameter `{param.name}`")
            with self.scoped(self.child_scope(symbol.scope, package.type_params, variables)):
                formal = self._block_params(param)
            wanted = tuple(self.substitute(p.type, bindings) for p in formal[1])
            instance = self._block_argument(arg.value, wanted)
            self._match_block(param, formal, instance, bindings, arg.value.loc)
            instances[param.name] = instance
        return instances

    def _block_argument(self, written: ast.Expr, wanted: tuple[Type, ...]) -> ir.InstanceDecl:
        if isinstance(written, ast.Call) and isinstance(written.callee, ast.TypeName):
            type_ = written.callee.type
            name = type_.name if isinstance(type_, ast.NamedType) else ""
            decl = self.make_instance(name, type_, written.args, written.loc, wanted=wanted)
        elif isinstance(written, ast.Name):
            symbol = self.lookup(written.name, written.loc, written.absolute)
            if not isinstance(symbol, InstanceSymbol):
                raise Refusal(written.loc, f"{written.name}: is not an instance")
            decl = symbol.decl
        else:
            raise Refusal(written.loc, "an argument of a package must be a control or parser instance")
        if decl.unit is None:
            raise Refusal(written.loc, f"{decl.name}: an argument of a package must be a control or parser instance")
        return decl

    def _block_params(self, param: ast.Parameter) -> tuple[type[ir.ControlUnit | ir.ParserUnit], tuple[ir.Param, ...]]:
        type_ = param.type
        block = self.lookup(type_.name, type_.loc) if isinstance(type_, ast.NamedType) else None
        if not isinstance(block, BlockSymbol) or not isinstance(type_, ast.NamedType):
            raise Refusal(param.loc, f"{param.name}: package parameters of this type are not supported")
        args = tuple(self.resolve(a) for a in type_.args or ())
        if len(args) != len(block.decl.type_params):
            message = f"{block.decl.name}: takes {len(block.decl.type_params)} type arguments, {len(args)} are given"
            raise Refusal(param.loc, message, f"it is declared at {block.loc}")
        with self.scoped(self.child_scope(block.scope, block.decl.type_params, args)):
            params = self.lower_params(block.decl.params, declare=False)
        return (ir.ControlUnit if isinstance(block.decl, ast.ControlDecl) else ir.ParserUnit), params

    def _match_block(
        self,
        param: ast.Parameter,
        formal: tuple[type[ir.ControlUnit | ir.ParserUnit], tuple[ir.Param, ...]],
        instance: ir.InstanceDecl,
        bindings: Bindings,
        loc: Location,
    ) -> None:
        """Refuses a control or parser whose parameters are not those of the architecture."""
        unit, (kind, params) = instance.unit, formal
        assert unit is not None, "only controls and parsers come here"
        if not isinstance(unit, kind):
            raise Refusal(
                loc, f"{unit.name}: cannot be the argument `{param.name}`: one is a control, the other a parser"
            )
        if len(unit.params) != len(params):
            message = f"{unit.name}: takes {len(unit.params)} parameters, `{param.name}` needs {len(params)}"
            raise Refusal(loc, message)
        for mine, wanted in zip(unit.params, params, strict=True):
            if mine.direction is not wanted.direction:
                message = (
                    f"{unit.name}: parameter `{mine.name}` must be {wanted.direction.value or 'without direction'}"
                )
                raise Refusal(loc, message)
            self.unify(wanted.type, mine.type, bindings)
            type_ = self.substitute(wanted.type, bindings)
            if type_ != mine.type:
                raise Refusal(loc, f"{unit.name}: parameter `{mine.name}` has type {mine.type}, not {type_}")

    # the instance tree

    def _assemble(self) -> ir.Program:
        assert self._main is not None, "checked before"
        package, blocks, notes = self._main
        externs = {
            i.name: ir.ExternInstance(i.cp_name.removeprefix("."), i) for i in self.frame.instances if i.unit is None
        }
        by_decl: dict[ir.InstanceDecl, _Made] = {e.decl: e for e in externs.values()}
        pipeline = {name: self._instance("", _named_after_type(decl), decl, by_decl) for name, decl in blocks.items()}
        return ir.Program(
            architecture=ARCHITECTURES[package.decl.name],
            package=package.decl.name,
            pipeline=pipeline,
            units=tuple(self.units),
            functions=tuple(self.functions),
            global_actions=tuple(self._global_actions),
            global_externs=externs,
            errors=tuple(self.errors),
            headers=tuple(t for t in self.types if isinstance(t, HeaderType)),
            unions=tuple(t for t in self.types if isinstance(t, UnionType)),
            structs=tuple(t for t in self.types if isinstance(t, StructType)),
            enums=tuple(self.enums),
            annotations=notes,
        )

    def _instance(
        self, parent: str, cp_name: str, decl: ir.InstanceDecl, known: dict[ir.InstanceDecl, _Made]
    ) -> ir.Instance:
        unit = decl.unit
        assert unit is not None, "only units are instances of the tree"
        path = ir.full_name(parent, cp_name)
        given = dict(self.bound_instances.get(decl, ()))
        children: dict[str, _Made] = {}
        here = dict(known)
        for child in unit.instances:
            made: _Made
            if child.alias:
                made = known[given[child.name]]
            elif child.unit is None:
                made = ir.ExternInstance(ir.full_name(path, child.cp_name), child)
            else:
                made = self._instance(path, child.cp_name, child, here)
            children[child.name] = here[child] = made
        return ir.Instance(path, decl, unit, children)


def _named_after_type(decl: ir.InstanceDecl) -> str:
    """A block of the pipeline goes by its type's name, not its instance's."""
    assert decl.unit is not None, "only units are instances of the tree"
    return decl.unit.name
