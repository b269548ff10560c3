"""Statements to C++."""

from __future__ import annotations

from contextlib import ExitStack

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import calls, loop_writer, reroll
from catchment.softswitch.compiler.backend.effects import has_effects
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expressions import Expressions, is_signed
from catchment.softswitch.compiler.backend.scope import Scope, variable_name
from catchment.softswitch.compiler.backend.text import Writer, string_literal
from catchment.softswitch.compiler.diagnostics import refuse_deep
from catchment.softswitch.compiler.loop_rounds import Loop, counted_in
from catchment.softswitch.compiler.types import StackType, TupleType, UnionType


class Statements:
    """Writes the statements of one function."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.ex = Expressions(scope)
        self._counted: dict[int, bool] = {}
        """Id of a loop, which the program keeps -> whether its rounds take steps."""

    def run(self, body: tuple[ir.Stmt, ...]) -> None:
        """A sequence; what comes after a jump is unreachable and left out."""
        at = 0
        while at < len(body):
            stmt = body[at]
            with refuse_deep(stmt.loc):
                at += self._next(body[at:])
            if isinstance(stmt, ir.Return | ir.Exit | ir.Break | ir.Continue):
                break

    def _next(self, body: tuple[ir.Stmt, ...]) -> int:
        """The first statement, with those that become one loop with it; how many these are."""
        stmt = body[0]
        program = self.scope.program
        count, arguments = reroll.find(program.types, program.exits, self.scope.unit, body)
        if not count:
            self.statement(stmt)
            return 1
        assert isinstance(stmt, ir.UnitApply)
        loop_writer.write(self.ex, stmt, count, arguments)
        return count

    def statement(self, stmt: ir.Stmt) -> None:
        method = getattr(self, f"_{type(stmt).__name__}", None)
        if method is None:
            raise unsupported(stmt.loc, f"statement {type(stmt).__name__}")
        method(stmt)

    def _Block(self, stmt: ir.Block) -> None:  # noqa: N802 - named after the node
        self.run(stmt.body)

    def _Declare(self, stmt: ir.Declare) -> None:  # noqa: N802
        cpp = self.ex.cpp(stmt.variable.type, stmt)
        initial = f" = {self.ex.value(stmt.init)}" if stmt.init is not None else "{}"
        self.scope.out.line(f"[[maybe_unused]] {cpp} {variable_name(stmt.variable)}{initial};")

    def declare_member(self, stmt: ir.Declare) -> None:
        """Initialise a variable that is a member of the unit anew."""
        cpp = self.ex.cpp(stmt.variable.type, stmt)
        initial = self.ex.value(stmt.init) if stmt.init is not None else f"{cpp}{{}}"
        self.scope.out.line(f"{variable_name(stmt.variable)} = {initial};")

    def _Assign(self, stmt: ir.Assign) -> None:  # noqa: N802
        target = stmt.target
        if has_effects(stmt.value) or has_effects(target):
            target = self.ex.freeze(target)
            value = self.ex.keep(stmt.value.type, self.ex.value(stmt.value), stmt.value)
        else:
            value = self.ex.value(stmt.value)
        self.ex.assign(target, value)

    def _branch(self, body: ir.Block) -> None:
        with self.scope.out.indented():
            self.run(body.body)

    def _If(self, stmt: ir.If) -> None:  # noqa: N802
        out = self.scope.out
        (first, *others), orelse = ir.branches(stmt)
        out.line(f"if ({self.ex.value(first.cond)}) {{")
        self._branch(first.then)
        with ExitStack() as inside:
            for link in others:
                self._else_if(link, inside)
            if orelse.body:
                out.line("} else {")
                self._branch(orelse)
            out.line("}")

    def _else_if(self, link: ir.If, inside: ExitStack) -> None:
        """Writes a further condition of a chain; one that takes statements goes into a block, which `inside` closes."""
        out, before = self.scope.out, Writer()
        cond = Expressions(self.scope.nested(before)).value(link.cond)
        if before.lines:
            out.line("} else {")
            inside.callback(out.line, "}")
            inside.enter_context(out.indented())
            out.extend(before)
            out.line(f"if ({cond}) {{")
        else:
            out.line(f"}} else if ({cond}) {{")
        self._branch(link.then)

    def _Evaluate(self, stmt: ir.Evaluate) -> None:  # noqa: N802
        text = self.ex.value(stmt.expr)
        if text and not text.isidentifier():
            self.scope.out.line(f"static_cast<void>({text});")

    def _ActionCall(self, stmt: ir.ActionCall) -> None:  # noqa: N802
        calls.action(self.ex, stmt)

    def _UnitApply(self, stmt: ir.UnitApply) -> None:  # noqa: N802
        calls.unit(self.ex, stmt)

    def _SetValidity(self, stmt: ir.SetValidity) -> None:  # noqa: N802
        place = self.ex.place(stmt.header)
        out = self.scope.out
        if isinstance(stmt.header.type, UnionType):
            raise unsupported(stmt.loc, "setValid() of a union")
        if not stmt.valid:
            out.line(f"{place}.valid = false;")
            return
        cpp = self.ex.cpp(stmt.header.type, stmt)
        out.line(f"if (!{place}.valid) {{ {place} = {cpp}{{}}; {place}.valid = true; }}")
        self.ex.after_write(stmt.header, place)

    def _StackShift(self, stmt: ir.StackShift) -> None:  # noqa: N802
        name = "push_front" if stmt.push else "pop_front"
        assert isinstance(stmt.stack.type, StackType), "only a stack has elements to shift"
        count = min(stmt.count, stmt.stack.type.size)
        self.scope.out.line(f"{self.ex.place(stmt.stack)}.{name}({count});")

    def _cases(self, cases: list[tuple[str, ir.Block]], default: ir.Block | None) -> None:
        out = self.scope.out
        if not cases:
            if default is not None:
                with out.block():
                    self.run(default.body)
            return
        for i, (condition, body) in enumerate(cases):
            out.line(f"{'} else ' if i else ''}if ({condition}) {{")
            self._branch(body)
        if default is not None:
            out.line("} else {")
            self._branch(default)
        out.line("}")

    def _SwitchAction(self, stmt: ir.SwitchAction) -> None:  # noqa: N802
        name = calls.applied(self.ex, stmt.table)
        places = {id(choice.action): i for i, choice in enumerate(stmt.table.actions)}
        cases = []
        default = None
        for case in stmt.cases:
            if case.is_default:
                default = case.body
                continue  # labels that share its arm need no test of their own
            tests = [f"{name}.action == {places[id(a)]}" for a in case.actions]
            cases.append((" || ".join(tests), case.body))
        self._cases(cases, default)

    def _SwitchValue(self, stmt: ir.SwitchValue) -> None:  # noqa: N802
        subject = self.ex.keep(stmt.subject.type, self.ex.value(stmt.subject), stmt.subject)
        cases = []
        default = None
        for case in stmt.cases:
            if case.is_default:
                default = case.body
                continue
            tests = [f"{subject} == {self.ex.value(v)}" for v in case.values]
            cases.append((" || ".join(tests), case.body))
        self._cases(cases, default)

    # Loops: `continue` comes back to the head, where the step is taken before the test --------------------------------

    def _For(self, stmt: ir.For) -> None:  # noqa: N802
        out = self.scope.out
        with out.block():
            self.run(stmt.init)
            first = self.scope.temporary()
            with out.block(f"for (bool {first} = true;; {first} = false)"):
                if stmt.update:
                    with out.block(f"if (!{first})"):
                        self.run(stmt.update)
                out.line(f"if (!({self.ex.value(stmt.cond)})) break;")
                self._count_round(stmt)
                self.run(stmt.body.body)

    def _count_round(self, stmt: Loop) -> None:
        if id(stmt) not in self._counted:
            self._counted |= counted_in(stmt)
        if self._counted[id(stmt)]:
            self.scope.program.counts_steps = True
            self.scope.out.line(f"take_step(pkt.engine, {string_literal(str(stmt.loc))});")

    def _ForRange(self, stmt: ir.ForRange) -> None:  # noqa: N802
        out = self.scope.out
        t = stmt.variable.type
        cpp, width = self.ex.cpp(t, stmt), self.ex.width(t)
        low_text, high_text = self.ex.values((stmt.low, stmt.high))
        with out.block():
            high = self.ex.keep(t, high_text, stmt.high)
            at, first = self.scope.temporary(), self.scope.temporary()
            out.line(f"{cpp} {at} = {low_text};")
            with out.block(f"for (bool {first} = true;; {first} = false)"):
                with out.block(f"if (!{first})"):
                    out.line(f"if ({at} == {high}) break;")
                    out.line(f"{at} = add<{width}>({at}, {cpp}(1));")
                less = f"less_s<{width}>({high}, {at})" if is_signed(t) else f"{high} < {at}"
                out.line(f"if ({less}) break;")
                self._count_round(stmt)
                out.line(f"[[maybe_unused]] {cpp} {variable_name(stmt.variable)} = {at};")
                self.run(stmt.body.body)

    def _ForEach(self, stmt: ir.ForEach) -> None:  # noqa: N802
        out = self.scope.out
        t = stmt.collection.type
        cpp = self.ex.cpp(stmt.variable.type, stmt)
        place = self.scope.temporary()
        if isinstance(t, StackType):
            out.line(f"const auto {place} = {self.ex.value(stmt.collection)}.e;")
        elif isinstance(t, TupleType):
            value = self.ex.value(stmt.collection)
            elements = ", ".join(f"{value}.f_{i}" for i in range(len(t.elements)))
            out.line(f"const std::array<{cpp}, {len(t.elements)}> {place} = {{{elements}}};")
        else:
            raise unsupported(stmt.loc, f"a loop over {t}")
        element = self.scope.temporary()
        with out.block(f"for (const auto& {element} : {place})"):
            self._count_round(stmt)
            out.line(f"[[maybe_unused]] {cpp} {variable_name(stmt.variable)} = {element};")
            self.run(stmt.body.body)

    def _Break(self, stmt: ir.Break) -> None:  # noqa: N802
        del stmt
        self.scope.out.line("break;")

    def _Continue(self, stmt: ir.Continue) -> None:  # noqa: N802
        del stmt
        self.scope.out.line("continue;")

    def _Return(self, stmt: ir.Return) -> None:  # noqa: N802
        if self.scope.returns_value:
            value = f" {self.ex.value(stmt.value)}" if stmt.value is not None else ""
            self.scope.out.line(f"return{value};")
        else:
            self.scope.out.line("return false;" if self.scope.returns_exit else "return;")

    def _Exit(self, stmt: ir.Exit) -> None:  # noqa: N802
        if not self.scope.returns_exit:
            raise unsupported(stmt.loc, "exit here")
        self.scope.out.line("return true;")
