"""Controls and parsers."""

from __future__ import annotations

from collections.abc import Callable

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.context import Place, UnitState, annotation_name
from catchment.softswitch.compiler.check.instances import ConstructorArgs, Frame, InstanceChecker, Unit
from catchment.softswitch.compiler.check.typing import has_variables
from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic, Diagnostics, Refusal, refuse_deep
from catchment.softswitch.compiler.scope import BlockSymbol, InstanceSymbol, PoisonSymbol, ValueSetSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    EnumType,
    ErrorType,
    ExternType,
    IntType,
    SerEnumType,
    StructType,
    TupleType,
    Type,
    TypeVar,
)

MOST_UNITS = 1 << 12
"""Controls and parsers with the constructor arguments that they are given; each is checked anew."""
_ENDS = ("accept", "reject")


class UnitChecker(InstanceChecker):
    """Checks control and parser declarations, open or specialised."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._unit_cache: dict[tuple[int, tuple[Type, ...], tuple[object, ...] | None], Unit] = {}
        self._open_units: list[int] = []
        self._unit_syntax: dict[Unit, tuple[ast.Parameter, ...]] = {}
        self.units: list[Unit] = []

    @property
    def unit_syntax(self) -> dict[Unit, tuple[ast.Parameter, ...]]:
        """The parameters of each unit as written."""
        return self._unit_syntax

    def declare_block(self, decl: ast.ControlDecl | ast.ParserDecl) -> None:
        """Declares a control or parser, or the type of one, and checks its body once with its parameters open."""
        symbol = BlockSymbol(decl.loc, decl, self.scope)
        self.refuse_shared_names(decl.type_params, (*decl.params, *decl.constructor_params))
        self.scope.declare(decl.name, symbol)
        bodyless = decl.body is None if isinstance(decl, ast.ControlDecl) else decl.states is None
        if bodyless:
            return
        if decl.type_params:
            variables = tuple(TypeVar(p.name) for p in decl.type_params)
            symbol = BlockSymbol(decl.loc, decl, self.child_scope(self.scope, decl.type_params, variables), variables)
        is_open = bool(decl.constructor_params or decl.type_params)
        self.specialised_unit(symbol, None if is_open else ConstructorArgs(), decl.loc)

    def specialised_unit(self, symbol: BlockSymbol, args: ConstructorArgs | None, loc: Location) -> Unit:
        """The unit of a block with these constructor arguments; None for one whose parameters stay open."""
        decl = symbol.decl
        if id(decl) in self._open_units:
            raise Refusal(loc, f"{decl.name}: a block cannot instantiate itself")
        if args is not None and not decl.constructor_params:
            args = ConstructorArgs()
        if any(map(has_variables, symbol.type_args)):
            args = None
        key = (id(decl), symbol.type_args, None if args is None else args.key())
        if key not in self._unit_cache:
            if len(self._unit_cache) >= MOST_UNITS:
                few = f"{MOST_UNITS} controls and parsers that a program may have"
                message = f"{decl.name}: with these arguments it is one more than the {few}"
                last = Diagnostic(loc, message, "give constructors fewer different arguments")
                raise CompileError([*self.diagnostics.errors, last])
            self._unit_cache[key] = self._build_unit(symbol, args)
        return self._unit_cache[key]

    def _build_unit(self, symbol: BlockSymbol, args: ConstructorArgs | None) -> Unit:
        decl = symbol.decl
        self._open_units.append(id(decl))
        outer_frame, self.frame = self.frame, Frame()
        place = Place.CONTROL if isinstance(decl, ast.ControlDecl) else Place.PARSER
        try:
            with self.scoped(symbol.scope), self.within(place, unit=UnitState()):
                params = self.lower_params(decl.params)
                self._constructor_params(symbol, args)
                with self.scoped():
                    unit: Unit
                    if isinstance(decl, ast.ControlDecl):
                        unit = self._control(decl, params)
                    else:
                        unit = self._parser(decl, params)
        finally:
            self.frame = outer_frame
            self._open_units.pop()
        self._unit_syntax[unit] = decl.params
        if args is not None:
            self.units.append(unit)
        return unit

    def _constructor_params(self, symbol: BlockSymbol, args: ConstructorArgs | None) -> None:
        decl = symbol.decl
        values = iter(args.values if args is not None else ())
        given = dict(args.instances if args is not None else ())
        for param in decl.constructor_params:
            type_ = self.constructor_param(symbol, param)
            if isinstance(type_, ExternType | BlockSymbol):
                extern = type_ if isinstance(type_, ExternType) else None
                unit = self._alias_unit(type_, given.get(param.name)) if isinstance(type_, BlockSymbol) else None
                alias = ir.InstanceDecl(param.loc, param.name, param.name, unit, extern, (), (), alias=True)
                self.frame.instances.append(alias)
                self.scope.declare(param.name, InstanceSymbol(param.loc, alias))
            elif args is not None:
                self.declare_constant(param.name, param.loc, next(values))
            else:
                variable = ir.Param(param.loc, param.name, self.unit.unique(param.name), type_)
                self.constructor_params.add(variable)
                self.declare_variable(variable)

    def _alias_unit(self, symbol: BlockSymbol, given: ir.InstanceDecl | None) -> Unit:
        """The unit behind a constructor parameter; while it is open, one with nothing but parameters."""
        if given is not None and given.unit is not None:
            return given.unit
        decl, params = symbol.decl, self.block_type_params(symbol)
        unit: Unit
        if isinstance(decl, ast.ControlDecl):
            body = ir.Block(decl.loc, ())
            unit = ir.ControlUnit(decl.loc, decl.name, decl.name, params, (), (), (), (), body, ())
        else:
            unit = ir.ParserUnit(decl.loc, decl.name, decl.name, params, (), (), (), {}, ())
        self._unit_syntax[unit] = decl.params
        return unit

    def _unique_unit(self, name: str) -> str:
        same = sum(u.name == name for u in self.units)
        return f"{name}_{same}" if same else name

    def _each_local(self, written: tuple[ast.Decl, ...], declare: Callable[[ast.Decl], None]) -> None:
        """Declares locals one by one; what fails is reported, and its name is not complained about again."""
        for local in written:
            try:
                with refuse_deep(local.loc, earlier=self.diagnostics.errors):
                    declare(local)
            except Refusal as refusal:
                self.diagnostics.add(refusal)
                self.scope.names.setdefault(local.name, PoisonSymbol(local.loc))

    def _local(self, local: ast.Decl) -> None:
        if isinstance(local, ast.ConstDecl):
            self.constant(local)
        elif isinstance(local, ast.VarDecl):
            self.frame.locals.append(self.variable(local))
        elif isinstance(local, ast.Instantiation):
            self.instantiation(local)
        elif isinstance(local, ast.ActionDecl):
            self.frame.actions.append(self.action(local, is_global=False))
        elif isinstance(local, ast.TableDecl):
            self.frame.tables.append(self.table(local))
        elif isinstance(local, ast.ValueSetDecl) and self.place is Place.PARSER:
            self._declare_value_set(local)
        else:
            raise Refusal(local.loc, f"{local.name}: cannot be declared in {self.place.value}")

    def _control(self, decl: ast.ControlDecl, params: tuple[ir.Param, ...]) -> ir.ControlUnit:
        assert decl.body is not None, "only controls with a body are checked"
        self._each_local(decl.locals, self._local)
        body = self.block(decl.body)
        return ir.ControlUnit(
            loc=decl.loc,
            name=decl.name,
            unique=self._unique_unit(decl.name),
            params=params,
            instances=tuple(self.frame.instances),
            locals=tuple(self.frame.locals),
            actions=tuple(self.frame.actions),
            tables=tuple(self.frame.tables),
            body=body,
            annotations=lower_annotations(decl.annotations),
        )

    # parsers

    def _declare_value_set(self, local: ast.ValueSetDecl) -> None:
        element = self.resolve(local.type)
        if not isinstance(
            element, BitType | IntType | BoolType | EnumType | SerEnumType | ErrorType | StructType | TupleType
        ):
            raise Refusal(local.loc, f"{local.name}: a value set cannot hold {element}")
        size = self.size(local.size, "the size of a value set")
        notes = lower_annotations(local.annotations)
        value_set = ir.ValueSet(local.loc, local.name, annotation_name(notes, local.name), element, size, notes)
        self.scope.declare(local.name, ValueSetSymbol(local.loc, value_set))
        self.frame.value_sets.append(value_set)

    def _parser(self, decl: ast.ParserDecl, params: tuple[ir.Param, ...]) -> ir.ParserUnit:
        assert decl.states is not None, "only parsers with a body are checked"
        self._each_local(decl.locals, self._local)
        names: set[str] = set(_ENDS)
        for state in decl.states:
            if state.name in names:
                what = "is implied and cannot be declared" if state.name in _ENDS else "duplicate declaration"
                self.diagnostics.error(state.loc, f"{state.name}: {what}")
            names.add(state.name)
        if "start" not in names:
            self.diagnostics.error(decl.loc, f"{decl.name}: parser has no `start` state")
        states: dict[str, ir.State] = {}
        for state in decl.states:
            try:
                with refuse_deep(state.loc, earlier=self.diagnostics.errors):
                    states[state.name] = self._state(state, names)
            except Refusal as refusal:
                self.diagnostics.add(refusal)
        if "start" in states and not _ends(states):
            self.diagnostics.error(decl.loc, f"{decl.name}: this parser never reaches accept or reject")
        return ir.ParserUnit(
            loc=decl.loc,
            name=decl.name,
            unique=self._unique_unit(decl.name),
            params=params,
            instances=tuple(self.frame.instances),
            value_sets=tuple(self.frame.value_sets),
            locals=tuple(self.frame.locals),
            states=states,
            annotations=lower_annotations(decl.annotations),
        )

    def _state(self, state: ast.StateDecl, names: set[str]) -> ir.State:
        with self.scoped():
            body = self.statements(state.body)
            transition: ir.Select | ir.Goto
            if state.transition is None:
                transition = ir.Goto(state.loc, "reject")
            elif isinstance(state.transition, ast.GotoDecl):
                if state.transition.next_state not in names:
                    raise Refusal(state.transition.loc, f"{state.transition.next_state}: no such state")
                transition = ir.Goto(state.transition.loc, state.transition.next_state)
            else:
                transition = self.select(state.transition, names)
        return ir.State(state.loc, state.name, body, transition, lower_annotations(state.annotations))


def _ends(states: dict[str, ir.State]) -> bool:
    """Whether some path from `start` leads to accept or reject."""
    pending, seen = ["start"], {"start"}
    while pending:
        state = states.get(pending.pop())
        if state is None:
            return True
        transition = state.transition
        targets = (
            [case.next_state for case in transition.cases]
            if isinstance(transition, ir.Select)
            else [transition.next_state]
        )
        pending += [t for t in targets if t not in seen]
        seen.update(targets)
    return False
