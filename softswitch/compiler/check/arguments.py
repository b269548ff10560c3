"""Arguments meet parameters: by position or name, inference of type arguments, directions."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.expressions import ExpressionChecker
from catchment.softswitch.compiler.check.typing import Bindings, has_variables, has_widthless
from catchment.softswitch.compiler.check.values import BraceValue, describe, source_order
from catchment.softswitch.compiler.diagnostics import Refusal
from catchment.softswitch.compiler.scope import InstanceSymbol, Scope, TypeSymbol, VariableSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import ExternType, InfIntType, StringType, Type, TypeVar, VoidType


@dataclass(frozen=True, slots=True)
class Signature:
    """A declaration's parameters with type arguments put in, and what it returns."""

    type_args: tuple[Type, ...]
    params: tuple[ir.Param, ...]
    result: Type


class ArgumentChecker(ExpressionChecker):
    """Matches calls with declarations."""

    def lower_params(self, written: tuple[ast.Parameter, ...], declare: bool = True) -> tuple[ir.Param, ...]:
        """The parameters of a declaration; with `declare`, as names of the innermost scope."""
        params: list[ir.Param] = []
        for w in written:
            direction = ir.Direction(w.direction)
            unique = self.unit.unique(w.name) if declare else w.name
            type_ = self.resolve(w.type)
            if isinstance(type_, VoidType):
                raise Refusal(w.loc, f"{w.name}: a parameter cannot be void")
            if isinstance(type_, InfIntType | StringType) and direction is not ir.Direction.NONE:
                raise Refusal(w.loc, f"{w.name}: a parameter of type {type_} cannot have a direction")
            if isinstance(type_, ExternType) and direction is not ir.Direction.NONE:
                raise Refusal(w.loc, f"{w.name}: a parameter of extern type {type_} cannot have a direction")
            if w.default is not None and direction in (ir.Direction.OUT, ir.Direction.INOUT):
                raise Refusal(w.loc, f"{w.name}: only `in` parameters can have a default value")
            param = ir.Param(w.loc, w.name, unique, type_, lower_annotations(w.annotations), direction)
            if any(p.name == w.name for p in params):
                raise Refusal(w.loc, f"{w.name}: duplicate parameter")
            params.append(param)
            if declare:
                if isinstance(type_, InfIntType | StringType):
                    raise Refusal(
                        w.loc, f"{w.name}: parameters of type {type_} are not supported here", "give it a width"
                    )
                self.declare_variable(param)
        return tuple(params)

    @staticmethod
    def refuse_shared_names(type_params: tuple[ast.TypeParam, ...], params: tuple[ast.Parameter, ...]) -> None:
        """Refuses a parameter that has the name of a type parameter of the same declaration."""
        names = {p.name for p in type_params}
        for param in params:
            if param.name in names:
                raise Refusal(param.loc, f"{param.name}: a type parameter has this name already")

    def align(
        self, written: tuple[ast.Parameter, ...], args: tuple[ast.Argument, ...], loc: Location, what: str
    ) -> list[ast.Argument | None]:
        """The arguments in the order of the parameters; None where a default or `@optional` fills in."""
        if any(a.name is not None for a in args) and not all(a.name is not None for a in args):
            raise Refusal(loc, f"{what}: either all or none of the arguments of a call must be named")
        if args and args[0].name is not None:
            return self._align_named(written, args, loc, what)
        if len(args) > len(written):
            raise Refusal(args[len(written)].loc, f"{what}: too many arguments: {len(args)} for {len(written)}")
        result: list[ast.Argument | None] = [*args]
        for param in written[len(args) :]:
            self._may_be_missing(param, loc, what)
            result.append(None)
        return result

    def _align_named(
        self, written: tuple[ast.Parameter, ...], args: tuple[ast.Argument, ...], loc: Location, what: str
    ) -> list[ast.Argument | None]:
        by_name: dict[str | None, ast.Argument] = {}
        names = {p.name for p in written}
        for arg in args:
            if arg.name in by_name:
                raise Refusal(arg.loc, f"{arg.name}: two arguments for one parameter")
            if arg.name not in names:
                raise Refusal(arg.loc, f"{arg.name}: {what} has no such parameter")
            by_name[arg.name] = arg
        result: list[ast.Argument | None] = []
        for param in written:
            if param.name not in by_name:
                self._may_be_missing(param, loc, what)
            result.append(by_name.get(param.name))
        return result

    def order(self, written: tuple[ast.Parameter, ...], args: tuple[ast.Argument, ...]) -> tuple[int, ...]:
        """The parameters' indices as their arguments stand in a call; empty where that is the parameters' order."""
        if not args or args[0].name is None:
            return ()
        names = [p.name for p in written]
        return source_order(names, [arg.name for arg in args if arg.name is not None])

    def _may_be_missing(self, param: ast.Parameter, loc: Location, what: str) -> None:
        if param.default is None and not any(a.name == "optional" for a in param.annotations):
            raise Refusal(loc, f"{what}: missing argument for parameter `{param.name}`")

    def signature(
        self,
        decl: ast.FunctionDecl,
        scope: Scope,
        type_args: tuple[ast.TypeExpr, ...] | None,
        args: list[ast.Argument | None],
        loc: Location,
    ) -> Signature:
        """The declaration's types for this call; type arguments not written are inferred from the arguments."""
        variables = tuple(TypeVar(p.name) for p in decl.type_params)
        bindings: Bindings = {}
        if type_args is not None:
            if len(type_args) != len(variables):
                message = f"{decl.name}: takes {len(variables)} type arguments, {len(type_args)} are given"
                raise Refusal(loc, message)
            for variable, written in zip(variables, type_args, strict=True):
                if not isinstance(written, ast.DontCareType):
                    bindings[variable] = self.resolve(written)
        inner = self.child_scope(scope, decl.type_params, variables)
        with self.scoped(inner):
            params = self.lower_params(decl.params, declare=False)
            result = VoidType() if decl.result is None else self.resolve(decl.result)
        explicit = set(bindings)
        for param, arg in zip(params, args, strict=True):
            if arg is not None and arg.value is not None and has_variables(param.type):
                self._infer(param.type, arg.value, bindings, explicit)
        for variable in variables:
            if variable not in bindings:
                raise Refusal(
                    loc, f"{decl.name}: cannot infer the type argument `{variable.name}`", "write it in <...>"
                )
            if has_widthless(bindings[variable]):
                raise self._widthless(variable, params, args, loc)
        bound = tuple(self._substituted(p, bindings) for p in params)
        return Signature(tuple(bindings[v] for v in variables), bound, self.substitute(result, bindings))

    def _widthless(
        self, variable: TypeVar, params: tuple[ir.Param, ...], args: list[ast.Argument | None], loc: Location
    ) -> Refusal:
        at = next((a.loc for p, a in zip(params, args, strict=True) if p.type is variable and a is not None), loc)
        return Refusal(at, "could not infer a width for this number", "give it one: 16w5")

    def _infer(self, formal: Type, value: ast.Expr, bindings: Bindings, explicit: set[TypeVar]) -> None:
        if isinstance(formal, TypeVar) and formal in explicit:
            return
        actual = self.settle(self.expr(value))
        if not isinstance(actual.type, VoidType):
            self.unify(formal, actual.type, bindings)

    def _substituted(self, param: ir.Param, bindings: Bindings) -> ir.Param:
        type_ = self.substitute(param.type, bindings)
        return ir.Param(param.loc, param.name, param.unique, type_, param.annotations, param.direction)

    def bind(
        self,
        params: tuple[ir.Param, ...],
        written: tuple[ast.Parameter, ...],
        args: list[ast.Argument | None],
        loc: Location,
        *,
        constants: bool = False,
        has_body: bool = False,
    ) -> tuple[ir.Expr, ...]:
        """The arguments as values and lvalues for `params`. With `constants`, those without direction must be known.

        `has_body`: what is called is written in P4, and reads what it is given.
        """
        bound: list[ir.Expr] = []
        for param, declared, arg in zip(params, written, args, strict=True):
            if arg is None:
                if declared.default is not None:
                    bound.append(self._default_argument(declared.default, param))
                elif has_body and param.direction is not ir.Direction.OUT:
                    raise Refusal(
                        loc, f"{param.name}: the argument is left out, and what is called reads it",
                        "give one, or the parameter a default: `@optional` is for what the target implements",
                    )  # fmt: skip
                else:
                    bound.append(ir.DontCare(loc, param.type))
            else:
                bound.append(self.argument(param, arg, constants))
        return tuple(bound)

    def _default_argument(self, default: ast.Expr, param: ir.Param) -> ir.Expr:
        with self.scoped(self.globals):
            value = self.value(default, param.type)
        if not self.is_late_constant(value):
            raise Refusal(default.loc, f"{param.name}: the default of a parameter must be a compile-time constant")
        return value

    def argument(self, param: ir.Param, arg: ast.Argument, constants: bool = False) -> ir.Expr:
        """One argument."""
        if arg.value is None:
            if param.direction is not ir.Direction.OUT:
                raise Refusal(arg.loc, f"{param.name}: `_` can only be given for an `out` parameter")
            return ir.DontCare(arg.loc, param.type)
        if isinstance(param.type, ExternType):
            return self._extern_argument(param, arg.value)
        if param.direction in (ir.Direction.OUT, ir.Direction.INOUT):
            target = self.lvalue(arg.value)
            if target.type != param.type:
                message = (
                    f"{param.name}: `{param.direction.value}` argument of type {describe(target)}, not {param.type}"
                )
                raise Refusal(arg.loc, message)
            return target
        value = self.value(arg.value, param.type)
        if constants and param.direction is ir.Direction.NONE and not self.is_late_constant(value):
            raise Refusal(arg.value.loc, f"{param.name}: the argument must be a compile-time constant")
        return value

    def _extern_argument(self, param: ir.Param, value: ast.Expr) -> ir.Expr:
        if isinstance(value, ast.Name):
            symbol = self.lookup(value.name, value.loc, value.absolute)
            if isinstance(symbol, VariableSymbol) and symbol.variable.type == param.type:
                return ir.VarRef(value.loc, param.type, symbol.variable)
            if isinstance(symbol, InstanceSymbol) and symbol.decl.type == param.type:
                return ir.InstanceRef(value.loc, param.type, symbol.decl)
            if isinstance(symbol, TypeSymbol):
                raise Refusal(value.loc, f"{value.name}: a type cannot be used as a value")
        raise Refusal(value.loc, f"{param.name}: the argument must be a {param.type}")

    def condition(self, written: ast.Expr, what: str) -> ir.Expr:
        """An expression that must be a bool."""
        cond = self.expr(written)
        if isinstance(cond, BraceValue) or str(cond.type) != "bool":
            raise Refusal(written.loc, f"{what} of type {describe(cond)}: it must be bool")
        return cond
