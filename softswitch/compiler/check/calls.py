"""Calls: functions, extern functions and methods, actions, tables, instances, and the methods of headers and stacks."""

from __future__ import annotations

from abc import abstractmethod

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.arguments import ArgumentChecker
from catchment.softswitch.compiler.check.context import Place, UnitState
from catchment.softswitch.compiler.check.extern_shapes import check_shape
from catchment.softswitch.compiler.check.values import describe
from catchment.softswitch.compiler.diagnostics import Diagnostics, Refusal
from catchment.softswitch.compiler.scope import (
    ActionSymbol,
    BlockSymbol,
    ExternSymbol,
    FunctionSymbol,
    InstanceSymbol,
    Scope,
    Symbol,
    TableSymbol,
    VariableSymbol,
)
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BoolType,
    ExternType,
    FieldsType,
    HeaderType,
    InfIntType,
    StackType,
    Type,
    UnionType,
    VarbitType,
    VoidType,
    bit_width,
)

_SIZES = ("minSizeInBits", "minSizeInBytes", "maxSizeInBits", "maxSizeInBytes")


class CallChecker(ArgumentChecker):
    """Everything written with parentheses after a name."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        super().__init__(diagnostics)
        self._function_cache: dict[tuple[int, tuple[Type, ...]], ir.Function] = {}
        self._open_functions: set[int] = set()

    @abstractmethod
    def function_body(self, written: ast.Block, result: Type) -> ir.Block:
        """Checks a function's body in the present scope."""

    @abstractmethod
    def direct_instance(self, symbol: BlockSymbol, call: ast.Call) -> ir.InstanceDecl:
        """The nameless instance that `Type.apply(...)` stands for."""

    # the two ways in

    def call_expression(self, call: ast.Call) -> ir.Expr:
        """A call that yields a value."""
        result = self.call(call)
        if isinstance(result, ir.Stmt):
            raise Refusal(call.loc, "this call yields no value")
        if isinstance(result.type, VoidType):
            raise Refusal(call.loc, "a call of type void cannot be used as a value")
        return result

    def call_statement(self, call: ast.Call) -> ir.Stmt:
        """A call for its effect."""
        result = self.call(call)
        return result if isinstance(result, ir.Stmt) else ir.Evaluate(call.loc, result)

    def call(self, call: ast.Call) -> ir.Expr | ir.Stmt:
        """Any call: those that yield values are expressions."""
        callee = call.callee
        if isinstance(callee, ast.Name):
            symbol = self.lookup(callee.name, callee.loc, callee.absolute)
            if isinstance(symbol, FunctionSymbol):
                return self._function(symbol, callee, call)
            if isinstance(symbol, ActionSymbol):
                return self._action(symbol.action, call)
            raise Refusal(callee.loc, f"{callee.name}: cannot be called")
        if isinstance(callee, ast.Member):
            return self._method(callee, call)
        if isinstance(callee, ast.TypeName):
            raise Refusal(callee.loc, "a constructor call can only stand where an instance is declared")
        raise Refusal(call.loc, "this expression cannot be called")

    # functions

    def _overload(
        self, overloads: list[ast.FunctionDecl], call: ast.Call, what: str
    ) -> tuple[ast.FunctionDecl, list[ast.Argument | None]]:
        """The declaration that the arguments fit, by number and name."""
        if len(overloads) == 1:
            return overloads[0], self.align(overloads[0].params, call.args, call.loc, what)
        for decl in overloads:
            try:
                return decl, self.align(decl.params, call.args, call.loc, what)
            except Refusal:
                continue
        raise Refusal(call.loc, f"{what}: no declaration takes these {len(call.args)} arguments")

    def _function(self, symbol: FunctionSymbol, callee: ast.Name, call: ast.Call) -> ir.Expr:
        decl, args = self._overload(symbol.overloads, call, callee.name)
        if id(decl) in self._open_functions:
            raise Refusal(callee.loc, f"{callee.name}: recursive calls are not allowed")
        signature = self.signature(decl, symbol.scope, call.type_args, args, call.loc)
        own = decl.body is not None
        values = self.bind(signature.params, decl.params, args, call.loc, constants=not own, has_body=own)
        if decl.body is None:
            self._place_allows(decl, callee.loc)
            if decl.name == "static_assert":
                return self._static_assert(values, call.loc)
            self._in_order(decl, call, values)
            check_shape("", decl.name, signature.params, call.loc)
            return ir.ExternCall(
                call.loc, signature.result, None, "", decl.name, signature.type_args, signature.params, values
            )
        function = self.specialised_function(decl, symbol.scope, signature.type_args)
        return ir.FunctionCall(call.loc, signature.result, function, values, self.order(decl.params, call.args))

    def _in_order(self, decl: ast.FunctionDecl, call: ast.Call, values: tuple[ir.Expr, ...]) -> None:
        """An extern takes its arguments in the order of its parameters: refuses another where calls make it matter."""
        if self.order(decl.params, call.args) and any(_runs_code(node) for node in ir.walk(values)):
            hint = "name them in the order of the parameters, or call first and keep the value in a variable"
            raise Refusal(
                call.loc, f"{decl.name}: calls in arguments that are not in the order of the parameters", hint
            )

    def _place_allows(self, decl: ast.FunctionDecl, loc: Location) -> None:
        if decl.name == "verify" and self.place is not Place.PARSER:
            raise Refusal(loc, "verify: can only be called in a parser")
        for annotation in decl.annotations:
            if annotation.name == "deprecated" and annotation.tokens:
                self.diagnostics.warn(loc, f"{decl.name}: deprecated: {annotation.tokens[0].text}")

    def _static_assert(self, values: tuple[ir.Expr, ...], loc: Location) -> ir.Expr:
        check = values[0]
        if isinstance(check, ir.Literal) and not check.value:
            message = values[1].value if len(values) > 1 and isinstance(values[1], ir.Literal) else ""
            raise Refusal(loc, f"static_assert failed{message and f': {message}'}")
        return ir.Literal(loc, BoolType(), True)

    def specialised_function(self, decl: ast.FunctionDecl, scope: Scope, args: tuple[Type, ...]) -> ir.Function:
        """The function with these type arguments; the same object each time."""
        key = (id(decl), args)
        if key not in self._function_cache:
            self._function_cache[key] = self._build_function(decl, scope, args)
            self.functions.append(self._function_cache[key])
        return self._function_cache[key]

    def _build_function(self, decl: ast.FunctionDecl, scope: Scope, args: tuple[Type, ...]) -> ir.Function:
        assert decl.body is not None, "extern functions have no body to check"
        assert decl.result is not None, "constructors have no body to check"
        self._open_functions.add(id(decl))
        outer = self.scope
        self.scope = self.child_scope(scope, decl.type_params, args)
        try:
            with self.within(Place.FUNCTION, unit=UnitState()):
                result = self.resolve(decl.result)
                params = self.lower_params(decl.params)
                self.return_type = result
                body = self.function_body(decl.body, result)
        finally:
            self.scope = outer
            self._open_functions.discard(id(decl))
        same = sum(f.name == decl.name for f in self.functions)
        return ir.Function(decl.loc, decl.name, f"{decl.name}_{same}" if same else decl.name, params, result, body)

    # actions

    def _action(self, action: ir.Action, call: ast.Call) -> ir.Stmt:
        if self.place not in (Place.CONTROL, Place.ACTION):
            raise Refusal(call.loc, f"{action.name}: an action cannot be called in {self.place.value}")
        if call.type_args is not None:
            raise Refusal(call.loc, f"{action.name}: an action takes no type arguments")
        written = self.action_syntax[action]
        args = self.align(written, call.args, call.loc, action.name)
        values = self.bind(action.params, written, args, call.loc, has_body=True)
        for node in ir.walk(values):
            if isinstance(node, ir.TableApply):
                raise Refusal(node.loc, f"{node.table.name}: a table cannot be applied in the argument of an action")
        return ir.ActionCall(call.loc, action, values, self.order(written, call.args))

    @property
    @abstractmethod
    def action_syntax(self) -> dict[ir.Action, tuple[ast.Parameter, ...]]:
        """The parameters of each action as written."""

    @property
    @abstractmethod
    def unit_syntax(self) -> dict[ir.ControlUnit | ir.ParserUnit, tuple[ast.Parameter, ...]]:
        """The parameters of each unit as written."""

    # methods

    def _method(self, callee: ast.Member, call: ast.Call) -> ir.Expr | ir.Stmt:
        base = callee.base
        if isinstance(base, ast.Name | ast.TypeName):
            symbol = self._base_symbol(base)
            if isinstance(symbol, TableSymbol):
                return self._apply_table(symbol.table, callee, call)
            if isinstance(symbol, BlockSymbol):
                if callee.name != "apply":
                    raise Refusal(callee.name_loc, f"{callee.name}: {symbol.decl.name} has no such method")
                return self._apply_unit(self.direct_instance(symbol, call), call)
            if isinstance(symbol, InstanceSymbol):
                return self._instance_method(symbol.decl, callee, call)
            if isinstance(symbol, VariableSymbol) and isinstance(symbol.variable.type, ExternType):
                return self.extern_method(symbol.variable, symbol.variable.type, callee, call)
            if isinstance(base, ast.TypeName) and callee.name in _SIZES:
                return self._size(self.resolve(base.type), callee)
        return self._builtin(self.expr(base), callee, call)

    def _base_symbol(self, base: ast.Name | ast.TypeName) -> Symbol | None:
        if isinstance(base, ast.Name):
            return self.lookup(base.name, base.loc, base.absolute)
        if isinstance(base.type, ast.NamedType):
            return self.lookup(base.type.name, base.type.loc, base.type.absolute)
        return None

    def _apply_table(self, table: ir.Table, callee: ast.Member, call: ast.Call) -> ir.Expr:
        if callee.name != "apply":
            raise Refusal(callee.name_loc, f"{callee.name}: a table has only the method apply")
        if self.place not in (Place.CONTROL, Place.TABLE):
            raise Refusal(call.loc, f"{table.name}: a table cannot be applied in {self.place.value}")
        if call.args:
            raise Refusal(call.loc, f"{table.name}: apply of a table takes no arguments")
        return ir.TableApply(call.loc, VoidType(), table, "")

    def table_result(self, member: ast.Member) -> ir.Expr | None:
        """`table.apply().hit` and `.miss`, or None when `member` is not of that form."""
        table = self.applied_table(member.base)
        if table is None:
            return None
        if member.name in ("hit", "miss"):
            if self.place not in (Place.CONTROL, Place.TABLE):
                raise Refusal(member.loc, f"{table.name}: a table cannot be applied in {self.place.value}")
            return ir.TableApply(member.loc, BoolType(), table, member.name)
        if member.name == "action_run":
            raise Refusal(member.loc, "action_run can only be the subject of a switch")
        raise Refusal(member.loc, f"{member.name}: the result of apply has only hit, miss, action_run")

    def applied_table(self, written: ast.Expr) -> ir.Table | None:
        """The table of `table.apply()`, or None."""
        if not (isinstance(written, ast.Call) and isinstance(written.callee, ast.Member)):
            return None
        base = written.callee.base
        if written.callee.name != "apply" or not isinstance(base, ast.Name):
            return None
        symbol = self.scope.find(base.name)
        return symbol.table if isinstance(symbol, TableSymbol) else None

    def _instance_method(self, decl: ir.InstanceDecl, callee: ast.Member, call: ast.Call) -> ir.Expr | ir.Stmt:
        if decl.unit is None:
            assert decl.type is not None, "an instance is of a unit or an extern"
            return self.extern_method(decl, decl.type, callee, call)
        if callee.name != "apply":
            raise Refusal(callee.name_loc, f"{callee.name}: {decl.name} has only the method apply")
        return self._apply_unit(decl, call)

    def _apply_unit(self, decl: ir.InstanceDecl, call: ast.Call) -> ir.Stmt:
        unit = decl.unit
        assert unit is not None, "only units are applied"
        wanted = Place.PARSER if isinstance(unit, ir.ParserUnit) else Place.CONTROL
        if self.place is not wanted:
            raise Refusal(call.loc, f"{decl.name}: cannot be applied in {self.place.value}")
        written = self.unit_syntax[unit]
        args = self.align(written, call.args, call.loc, decl.name)
        values = self.bind(unit.params, written, args, call.loc, has_body=True)
        return ir.UnitApply(call.loc, decl, values, self.order(written, call.args))

    def extern_method(
        self, target: ir.InstanceDecl | ir.Variable, type_: ExternType, callee: ast.Member, call: ast.Call
    ) -> ir.Expr:
        """A method of an extern object."""
        symbol = type_.declaration
        assert isinstance(symbol, ExternSymbol), "an extern type knows its declaration"
        overloads = [m for m in symbol.decl.methods if m.name == callee.name and m.result is not None]
        if not overloads:
            raise Refusal(callee.name_loc, f"{callee.name}: extern {type_.name} has no such method")
        decl, args = self._overload(overloads, call, f"{target.name}.{callee.name}")
        scope = self.child_scope(symbol.scope, symbol.decl.type_params, type_.type_args)
        signature = self.signature(decl, scope, call.type_args, args, call.loc)
        values = self.bind(signature.params, decl.params, args, call.loc, constants=True)
        self._in_order(decl, call, values)
        check_shape(type_.name, decl.name, signature.params, call.loc)
        self._core_rules(type_, decl, signature.type_args, call.loc)
        return ir.ExternCall(
            call.loc, signature.result, target, type_.name, decl.name, signature.type_args, signature.params, values
        )

    def _core_rules(self, type_: ExternType, decl: ast.FunctionDecl, args: tuple[Type, ...], loc: Location) -> None:
        """What core.p4's methods ask of their type arguments."""
        if type_.name == "packet_in" and decl.name == "extract":
            header = args[0]
            if not isinstance(header, HeaderType):
                raise Refusal(loc, f"extract: the argument must be a header, not {header}")
            varbits = sum(isinstance(f.type, VarbitType) for f in header.fields)
            if len(decl.params) == 1 and varbits:
                raise Refusal(loc, f"extract: {header} has a varbit field: give its size as second argument")
            if len(decl.params) == 2 and varbits != 1:
                raise Refusal(loc, f"extract: {header} must have exactly one varbit field to be given its size")
        if type_.name == "packet_in" and decl.name == "lookahead" and _min_width(args[0]) != bit_width(args[0]):
            raise Refusal(loc, f"lookahead: {args[0]} has no fixed size")
        if type_.name == "packet_in" and decl.name == "lookahead" and bit_width(args[0]) < 0:
            raise Refusal(loc, f"lookahead: {args[0]} has no fixed size")
        if (
            type_.name == "packet_out"
            and decl.name == "emit"
            and not (isinstance(args[0], FieldsType) or _is_stack(args[0]))
        ):
            raise Refusal(loc, f"emit: the argument must be a header, stack, union or struct, not {args[0]}")

    # headers and stacks

    def _size(self, type_: Type, callee: ast.Member) -> ir.Expr:
        width = bit_width(type_)
        if callee.name.startswith("min"):
            width = _min_width(type_)
        if width < 0:
            raise Refusal(callee.name_loc, f"{callee.name}: {type_} has no size")
        return ir.Literal(callee.loc, InfIntType(), width if callee.name.endswith("Bits") else (width + 7) // 8)

    def _builtin(self, base: ir.Expr, callee: ast.Member, call: ast.Call) -> ir.Expr | ir.Stmt:
        name, type_ = callee.name, base.type
        if name in _SIZES and not call.args:
            return self._size(type_, callee)
        if isinstance(type_, HeaderType | UnionType) and name == "isValid":
            self._no_args(call, name)
            return ir.IsValid(call.loc, BoolType(), base)
        if isinstance(type_, HeaderType) and name in ("setValid", "setInvalid"):
            self._no_args(call, name)
            self._writable(base, name)
            return ir.SetValidity(call.loc, base, name == "setValid")
        if _is_stack(type_) and name in ("push_front", "pop_front"):
            self._writable(base, name)
            if self.place is Place.PARSER:
                raise Refusal(call.loc, f"{name}: of a header stack cannot be used in a parser")
            if len(call.args) != 1 or call.args[0].value is None:
                raise Refusal(call.loc, f"{name}: takes one argument")
            count = self.constant_int(call.args[0].value, f"the argument of {name}")
            if count < 0:
                raise Refusal(call.args[0].loc, f"{name}: the argument must not be negative")
            return ir.StackShift(call.loc, base, name == "push_front", count)
        raise Refusal(callee.name_loc, f"{name}: {describe(base)} has no such method")

    def _no_args(self, call: ast.Call, name: str) -> None:
        if call.args:
            raise Refusal(call.args[0].loc, f"{name}: takes no arguments")

    def _writable(self, base: ir.Expr, name: str) -> None:
        if not self.is_lvalue(base):
            raise Refusal(base.loc, f"{name}: must be applied to something that can be written")


def _runs_code(node: object) -> bool:
    return isinstance(node, ir.FunctionCall | ir.ExternCall | ir.TableApply)


def _is_stack(type_: Type) -> bool:
    return isinstance(type_, StackType) and isinstance(type_.element, HeaderType | UnionType)


def _min_width(type_: Type) -> int:
    if isinstance(type_, VarbitType):
        return 0
    if isinstance(type_, UnionType):
        return min((_min_width(f.type) for f in type_.fields), default=0)
    if isinstance(type_, FieldsType):
        return sum(_min_width(f.type) for f in type_.fields)
    if isinstance(type_, StackType):
        return type_.size * _min_width(type_.element)
    return bit_width(type_)
