"""Parsers: from state to state."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import Type
from catchment.softswitch.interpreter.errors import too_deep
from catchment.softswitch.interpreter.signals import RejectSignal
from catchment.softswitch.interpreter.statements import Statements
from catchment.softswitch.interpreter.values import show, to_bits

MAX_STEPS = 65536


class ParserStates(Statements):
    """Runs parsers; a parser that ends normally has accepted."""

    def run_states(self, unit: ir.ParserUnit) -> None:
        name = "start"
        for _ in range(MAX_STEPS):
            if name == "accept":
                return
            if name == "reject":
                raise RejectSignal("NoError")
            state = unit.states[name]
            self.trace.line(f"state {name}", state.loc)
            self.trace.depth += 1
            try:
                for stmt in state.body:
                    self.run(stmt)
                name = self._next(state.transition)
            except RecursionError:
                raise too_deep(state.loc) from None
            finally:
                self.trace.depth -= 1
        raise RejectSignal("ParserTimeout")

    def _next(self, transition: ir.Select | ir.Goto) -> str:
        if isinstance(transition, ir.Goto):
            return transition.next_state
        subjects = [(self.number(expr), expr.type) for expr in transition.exprs]
        if self.trace.on:
            self.trace.line(f"select({', '.join(show(value, t) for value, t in subjects)})", transition.loc)
        for case in transition.cases:
            if self._matches(case.matches, subjects):
                return case.next_state
        raise RejectSignal("NoError")  # BMv2 sets no error here

    def _matches(self, matches: Sequence[ir.Match], subjects: list[tuple[int, Type]]) -> bool:
        if len(matches) == 1 and matches[0].kind is ir.MatchValueKind.VALUE_SET:
            return self._in_set(matches[0], subjects)
        return all(self._match(m, value, t) for m, (value, t) in zip(matches, subjects, strict=True))

    def _in_set(self, match: ir.Match, subjects: list[tuple[int, Type]]) -> bool:
        assert match.value_set is not None
        assert self.frame.instance is not None
        name = ir.full_name(self.frame.instance.path, match.value_set.cp_name)
        return self.packet.state.value_sets[name].contains([to_bits(value, t) for value, t in subjects])

    def _match(self, match: ir.Match, value: int, t: Type) -> bool:
        if match.kind is ir.MatchValueKind.ANY:
            return True
        if match.kind is ir.MatchValueKind.VALUE_SET:
            return self._in_set(match, [(value, t)])
        assert match.first is not None
        first = self.number(match.first)
        if match.kind is ir.MatchValueKind.EXACT:
            return value == first
        assert match.second is not None
        second = self.number(match.second)
        if match.kind is ir.MatchValueKind.RANGE:
            return first <= value <= second
        return value & second == first & second
