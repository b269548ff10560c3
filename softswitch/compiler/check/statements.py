"""Statements."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from catchment.softswitch.compiler import ast, ir
from catchment.softswitch.compiler.check.annotations import lower_annotations
from catchment.softswitch.compiler.check.calls import CallChecker
from catchment.softswitch.compiler.check.context import Place
from catchment.softswitch.compiler.check.values import describe, is_constant
from catchment.softswitch.compiler.diagnostics import Refusal, refuse_deep
from catchment.softswitch.compiler.scope import PoisonSymbol
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.compiler.types import (
    BitType,
    EnumType,
    ErrorType,
    ExternType,
    InfIntType,
    IntType,
    ListType,
    SerEnumType,
    StackType,
    StringType,
    TupleType,
    Type,
    VoidType,
)


class StatementChecker(CallChecker):
    """Turns written statements into typed ones; an error in one does not hide those in the next."""

    def block(self, written: ast.Block) -> ir.Block:
        """A block, in a scope of its own."""
        with self.scoped():
            return ir.Block(written.loc, self.statements(written.body))

    def statements(self, written: tuple[ast.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements in the present scope."""
        result: list[ir.Stmt] = []
        for statement in written:
            try:
                with refuse_deep(statement.loc, earlier=self.diagnostics.errors):
                    checked = self.statement(statement)
            except Refusal as refusal:
                self.diagnostics.add(refusal)
                self._declare_anyway(statement)
                continue
            if checked is not None:
                result.append(checked)
        return tuple(result)

    def _declare_anyway(self, statement: ast.Stmt) -> None:
        """Declare the name after an error in its declaration, so that its uses are not errors too: a variable if its
        type is good."""
        if not isinstance(statement, ast.Decl) or statement.name in self.scope.names:
            return
        if isinstance(statement, ast.VarDecl):
            with suppress(Refusal):
                type_ = self.resolve(statement.type)
                unique = self.unit.unique(statement.name)
                self.declare_variable(ir.Variable(statement.loc, statement.name, unique, type_))
        self.scope.names.setdefault(statement.name, PoisonSymbol(statement.loc))

    def function_body(self, written: ast.Block, result: Type) -> ir.Block:
        """A function's body; one that returns a value must do so on every path."""
        before = len(self.diagnostics.errors)
        body = self.block(written)
        refused = len(self.diagnostics.errors) > before  # what was refused may be the return that is missed
        if not isinstance(result, VoidType) and not refused and not _always_returns(body):
            raise Refusal(written.loc, f"this function does not return a value of type {result} on all paths")
        return body

    def statement(self, written: ast.Stmt) -> ir.Stmt | None:  # noqa: PLR0912 - one line per kind
        """One statement; None for what leaves nothing to execute."""
        loc = written.loc
        match written:
            case ast.Block():
                return self.block(written)
            case ast.Empty():
                return None
            case ast.Assign():
                return self._assign(written)
            case ast.CallStmt():
                return self.call_statement(written.call)
            case ast.VarDecl():
                return self.variable(written)
            case ast.ConstDecl():
                self.constant(written)
                return None
            case ast.If():
                return self._if(written)
            case ast.Switch():
                return self._switch(written)
            case ast.For():
                return self._for(written)
            case ast.ForIn():
                return self._for_in(written)
            case ast.Break() | ast.Continue():
                if not self.loops:
                    raise Refusal(loc, "break and continue can only be used in a loop")
                return ir.Break(loc) if isinstance(written, ast.Break) else ir.Continue(loc)
            case ast.Return():
                return self._return(written)
            case ast.Exit():
                if self.place not in (Place.CONTROL, Place.ACTION):
                    raise Refusal(loc, f"exit cannot be used in {self.place.value}")
                return ir.Exit(loc)
            case ast.Instantiation():
                raise Refusal(loc, f"{written.name}: an instance cannot be declared in a block")
        raise Refusal(loc, "this cannot be used as a statement")

    def _if(self, written: ast.If) -> ir.If | ir.Block:
        """An `if` with every `else if` after it, one by one; conditions that are known are decided."""
        links: list[tuple[Location, ir.Expr, ir.Block]] = []
        rest: ast.Stmt | None = written
        while isinstance(rest, ast.If):
            links.append((rest.loc, self.condition(rest.cond, "condition"), self._body(rest.then)))
            written, rest = rest, rest.orelse
        result: ir.If | ir.Block = self._body(rest) if rest is not None else ir.Block(written.loc, ())
        for loc, cond, then in reversed(links):
            if isinstance(cond, ir.Literal):
                result = then if cond.value else result
            else:
                orelse = result if isinstance(result, ir.Block) else ir.Block(result.loc, (result,))
                result = ir.If(loc, cond, then, orelse)
        return result

    def _body(self, written: ast.Stmt) -> ir.Block:
        if isinstance(written, ast.Block):
            return self.block(written)
        with self.scoped():
            return ir.Block(written.loc, self.statements((written,)))

    # declarations

    def variable(self, written: ast.VarDecl) -> ir.Declare:
        """A variable."""
        type_ = self.resolve(written.type)
        if isinstance(type_, VoidType | InfIntType | StringType | ExternType | ListType):
            raise Refusal(written.loc, f"{written.name}: a variable cannot have type {type_}")
        init = None if written.init is None else self.value(written.init, type_)
        notes = lower_annotations(written.annotations)
        variable = ir.Variable(written.loc, written.name, self.unit.unique(written.name), type_, notes)
        self.declare_variable(variable)
        return ir.Declare(written.loc, variable, init)

    def constant(self, written: ast.ConstDecl) -> None:
        """A constant."""
        type_ = self.resolve(written.type)
        value = self.value(written.init, type_)
        if not self.is_late_constant(value):
            raise Refusal(
                written.init.loc, f"{written.name}: cannot evaluate the initialiser to a compile-time constant"
            )
        self.declare_constant(written.name, written.loc, value)

    # simple statements

    def _assign(self, written: ast.Assign) -> ir.Stmt:
        target = self.lvalue(written.target)
        if not written.op:
            return ir.Assign(written.loc, target, self.value(written.value, target.type))
        before: list[ir.Stmt] = []
        target = self._pinned(target, before)
        value = self.binary(written.loc, written.op, target, self.expr(written.value))
        assign = ir.Assign(written.loc, target, self.convert(value, target.type))
        return ir.Block(written.loc, (*before, assign)) if before else assign

    def _pinned(self, target: ir.Expr, before: list[ir.Stmt]) -> ir.Expr:
        """`target` so that it can be evaluated twice: calls in its indices go to variables, declared in `before`."""
        if isinstance(target, ir.FieldRef | ir.Slice | ir.PlusSlice):
            return replace(target, base=self._pinned(target.base, before))
        if not isinstance(target, ir.Index):
            return target
        base, index = self._pinned(target.base, before), target.index
        if any(isinstance(n, ir.FunctionCall | ir.ExternCall | ir.TableApply) for n in ir.walk(index)):
            variable = ir.Variable(index.loc, "index", self.unit.unique("index"), index.type)
            before.append(ir.Declare(index.loc, variable, index))
            index = ir.VarRef(index.loc, index.type, variable)
        return replace(target, base=base, index=index)

    def _return(self, written: ast.Return) -> ir.Return:
        if self.place is Place.PARSER:
            raise Refusal(written.loc, "return cannot be used in a parser")
        if self.return_type is None or isinstance(self.return_type, VoidType):
            if written.value is not None:
                raise Refusal(written.loc, f"return of a value in {self.place.value}, which returns none")
            return ir.Return(written.loc, None)
        if written.value is None:
            raise Refusal(written.loc, f"return without a value in a function of type {self.return_type}")
        return ir.Return(written.loc, self.value(written.value, self.return_type))

    # switch

    def _switch(self, written: ast.Switch) -> ir.Stmt:
        if self.place is Place.PARSER:
            raise Refusal(written.loc, "switch cannot be used in a parser")
        if self.place is Place.ACTION:
            raise Refusal(written.loc, "switch cannot be used in an action on this target")
        for index, case in enumerate(written.cases):
            if case.label is None and index != len(written.cases) - 1:
                raise Refusal(case.loc, "default must be the last label of a switch")
        subject = written.subject
        if isinstance(subject, ast.Member) and subject.name == "action_run":
            table = self.applied_table(subject.base)
            if table is not None:
                return self._switch_action(written, table)
        return self._switch_value(written)

    def _switch_action(self, written: ast.Switch, table: ir.Table) -> ir.Stmt:
        if self.place is not Place.CONTROL:
            raise Refusal(written.loc, f"{table.name}: a table cannot be applied in {self.place.value}")
        known = {choice.action.name: choice.action for choice in table.actions}
        seen: set[str] = set()
        cases: list[ir.ActionCase] = []
        pending: list[ir.Action] = []
        for case in written.cases:
            if case.label is not None:
                if not isinstance(case.label, ast.Name) or case.label.name not in known:
                    raise Refusal(case.loc, f"this label is not an action of table {table.name}")
                if case.label.name in seen:
                    raise Refusal(case.loc, f"{case.label.name}: duplicate switch label")
                seen.add(case.label.name)
                pending.append(known[case.label.name])
            if case.body is not None:
                body = self.block(case.body)
                cases.append(ir.ActionCase(case.loc, tuple(pending), case.label is None, body))
                pending = []
        return ir.SwitchAction(written.loc, table, tuple(cases))

    def _switch_value(self, written: ast.Switch) -> ir.Stmt:
        subject = self.expr(written.subject)
        if isinstance(subject, ir.Literal) and isinstance(subject.type, InfIntType):
            raise Refusal(subject.loc, "switch on a number without width")
        if not isinstance(subject.type, BitType | IntType | EnumType | SerEnumType | ErrorType):
            raise Refusal(subject.loc, f"switch on a value of type {describe(subject)}")
        seen: set[object] = set()
        cases: list[ir.ValueCase] = []
        pending: list[ir.Expr] = []
        for case in written.cases:
            if case.label is not None:
                label = self.value(case.label, subject.type)
                if not is_constant(label):
                    raise Refusal(case.loc, "a switch label must be a compile-time constant")
                key = label.value if isinstance(label, ir.Literal) else getattr(label, "ordinal", None)
                if key in seen:
                    raise Refusal(case.loc, "duplicate switch label")
                seen.add(key)
                pending.append(label)
            if case.body is not None:
                cases.append(ir.ValueCase(case.loc, tuple(pending), case.label is None, self.block(case.body)))
                pending = []
        return ir.SwitchValue(written.loc, subject, tuple(cases))

    # loops

    def _loop_body(self, written: ast.Stmt) -> ir.Block:
        self.loops += 1
        try:
            return self._body(written)
        finally:
            self.loops -= 1

    def _for(self, written: ast.For) -> ir.Stmt:
        if self.place is Place.PARSER:
            raise Refusal(written.loc, "for cannot be used in a parser")
        with self.scoped():
            init = self.statements(written.init)
            cond = self.condition(written.cond, "condition")
            body = self._loop_body(written.body)
            return ir.For(written.loc, init, cond, self.statements(written.update), body)

    def _for_in(self, written: ast.ForIn) -> ir.Stmt:
        if self.place is Place.PARSER:
            raise Refusal(written.loc, "for cannot be used in a parser")
        low: ir.Expr | None = None
        high: ir.Expr | None = None
        collection: ir.Expr | None = None
        if isinstance(written.collection, ast.RangeSet):
            low, high = self.expr(written.collection.low), self.expr(written.collection.high)
        else:
            collection = self.settle(self.expr(written.collection))
        with self.scoped():
            variable = self._loop_variable(written)
            body = self._loop_body(written.body)
        if low is not None and high is not None:
            if not isinstance(variable.type, BitType | IntType):
                raise Refusal(written.loc, f"{written.name}: a range needs a variable of type bit or int")
            low, high = self.convert(low, variable.type), self.convert(high, variable.type)
            return ir.ForRange(written.loc, variable, low, high, body)
        assert collection is not None, "a for loop goes over a range or a collection"
        elements: tuple[Type, ...] = ()
        if isinstance(collection.type, StackType):
            elements = (collection.type.element,)
        elif isinstance(collection.type, TupleType):
            elements = collection.type.elements
        if not elements or any(e not in (variable.type, InfIntType()) for e in elements):
            raise Refusal(written.loc, f"for over {describe(collection)} with a variable of type {variable.type}")
        if isinstance(collection, ir.Aggregate):
            members = tuple(self.convert(m, variable.type) for m in collection.members)
            collection = ir.Aggregate(collection.loc, TupleType((variable.type,) * len(members)), members)
        return ir.ForEach(written.loc, variable, collection, body)

    def _loop_variable(self, written: ast.ForIn) -> ir.Variable:
        type_ = self.resolve(written.type)
        variable = ir.Variable(written.loc, written.name, self.unit.unique(written.name), type_)
        self.declare_variable(variable)
        return variable


def _always_returns(statement: ir.Stmt) -> bool:
    if isinstance(statement, ir.Return | ir.Exit):
        return True
    if isinstance(statement, ir.Block):
        return any(map(_always_returns, statement.body))
    if isinstance(statement, ir.If):
        links, orelse = ir.branches(statement)
        return all(_always_returns(body) for body in (*(link.then for link in links), orelse))
    if isinstance(statement, ir.SwitchValue):
        return any(c.is_default for c in statement.cases) and all(_always_returns(c.body) for c in statement.cases)
    return False
