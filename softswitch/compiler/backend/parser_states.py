"""Parser states as labels, transitions as jumps."""

from __future__ import annotations

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.backend import bitstrings
from catchment.softswitch.compiler.backend.errors import unsupported
from catchment.softswitch.compiler.backend.expressions import is_signed
from catchment.softswitch.compiler.backend.scope import Scope
from catchment.softswitch.compiler.backend.statements import Statements
from catchment.softswitch.compiler.backend.tables import KeyLayout, key_layout, key_words, lookup
from catchment.softswitch.compiler.backend.text import Writer, identifier
from catchment.softswitch.compiler.diagnostics import refuse_deep
from catchment.softswitch.compiler.types import (
    BitType,
    BoolType,
    FieldsType,
    IntType,
    SerEnumType,
    StructType,
    TupleType,
    Type,
    bit_width,
)

MAX_STEPS = 65536


def value_set_fields(value_set: ir.ValueSet) -> list[tuple[str, Type, str]]:
    """Name, type and match kind of each member field; refuses those that no member can be written for."""
    fields = _fields_of(value_set)
    for name, t, kind in fields:
        if not isinstance(t, BitType | IntType | BoolType | SerEnumType | StructType) or bit_width(t) <= 0:
            raise unsupported(value_set.loc, f"value set {value_set.name} with {name} of type {t}")
        if kind == "range" and bit_width(t) > 64:
            raise unsupported(value_set.loc, f"value set {value_set.name} with a range of {bit_width(t)} bits")
    return fields


def _fields_of(value_set: ir.ValueSet) -> list[tuple[str, Type, str]]:
    element = value_set.element
    if isinstance(element, FieldsType):
        out = []
        for field in element.fields:
            kinds = [str(a.values[0] if a.values else a.text) for a in field.annotations if a.name == "match"]
            out.append((field.name, field.type, kinds[0].strip() if kinds else "exact"))
        return out
    if isinstance(element, TupleType):
        return [(f"f{i}", t, "exact") for i, t in enumerate(element.elements)]
    return [(value_set.name, element, "exact")]


def value_set_layout(scope_width: object, value_set: ir.ValueSet) -> KeyLayout:
    """How its members are packed. `scope_width` is Types.width."""
    assert callable(scope_width)
    return key_layout([(scope_width(t), kind) for _, t, kind in value_set_fields(value_set)])


def value_set_member(value_set: ir.ValueSet) -> str:
    return f"vs_{identifier(value_set.name)}"


class _States:
    def __init__(self, scope: Scope, unit: ir.ParserUnit) -> None:
        self.scope = scope
        self.unit = unit
        self.order = self._reachable()
        self.place = {name: i for i, name in enumerate(self.order)}
        self.loops = False

    def _reachable(self) -> list[str]:
        """States in the order in which they are first found from `start`."""
        order: list[str] = []
        waiting = ["start"]
        while waiting:
            name = waiting.pop(0)
            if name in order or name not in self.unit.states:
                continue
            order.append(name)
            transition = self.unit.states[name].transition
            if isinstance(transition, ir.Goto):
                waiting.append(transition.next_state)
            else:
                waiting += [case.next_state for case in transition.cases]
        return order

    def jump(self, source: str, target: str) -> str:
        """The statements of a transition."""
        if target == "accept":
            return "return false;"
        if target == "reject":
            self.scope.rejects[0] = True
            return "goto reject;"
        if target not in self.place:
            raise unsupported(self.unit.loc, f"a transition to {target}")
        label = f"state_{identifier(target)}"
        if self.place[target] <= self.place[source]:
            self.loops = True
            return f"if (++steps > {MAX_STEPS}) {{ {self.scope.reject('ParserTimeout')} }} goto {label};"
        return f"goto {label};"

    def write(self) -> None:
        body = Writer()
        used = {"start"}
        inner = self.scope.nested(body)
        for name in self.order:
            body.line(f"state_{identifier(name)}:")
            state = self.unit.states[name]
            with body.block():
                statements = Statements(inner)
                statements.run(state.body)
                with refuse_deep(state.loc):
                    self._transition(statements, state)
            transition = state.transition
            targets = [transition.next_state] if isinstance(transition, ir.Goto) else []
            if isinstance(transition, ir.Select):
                targets = [case.next_state for case in transition.cases]
            used |= set(targets)
        out = self.scope.out
        if self.loops:
            out.line("std::uint32_t steps = 0;")
        first = f"state_{identifier('start')}:"
        start_used = any("goto state_start;" in line for line in body.lines)
        for line in body.lines:
            if line.strip() == first and not start_used:
                continue
            out.line(line)
        if self.scope.rejects[0]:
            out.line("reject:")
            out.line("return true;")

    def _transition(self, statements: Statements, state: ir.State) -> None:
        out = statements.scope.out
        if isinstance(state.transition, ir.Goto):
            out.line(self.jump(state.name, state.transition.next_state))
            return
        select = state.transition
        ex = statements.ex
        subjects = [(e.type, ex.keep(e.type, v, e)) for e, v in zip(select.exprs, ex.values(select.exprs), strict=True)]
        for case in select.cases:
            condition = self._condition(statements, case, subjects)
            if condition == "true":
                out.line(self.jump(state.name, case.next_state))
                return
            out.line(f"if ({condition}) {{ {self.jump(state.name, case.next_state)} }}")
        out.line(self.jump(state.name, "reject"))  # BMv2 sets no error

    def _condition(self, statements: Statements, case: ir.SelectCase, subjects: list[tuple[Type, str]]) -> str:
        if len(case.matches) == 1 and case.matches[0].kind is ir.MatchValueKind.VALUE_SET:
            value_set = case.matches[0].value_set
            assert value_set is not None
            return self._member(statements, value_set, subjects)
        tests = []
        for match, (t, subject) in zip(case.matches, subjects, strict=True):
            test = self._test(statements, match, t, subject)
            if test:
                tests.append(test)
        return " && ".join(tests) or "true"

    def _test(self, statements: Statements, match: ir.Match, t: Type, subject: str) -> str:
        ex = statements.ex
        if match.kind is ir.MatchValueKind.ANY:
            return ""
        if match.kind is ir.MatchValueKind.VALUE_SET:
            assert match.value_set is not None
            return self._member(statements, match.value_set, [(t, subject)])
        assert match.first is not None
        first = ex.value(match.first)
        if match.kind is ir.MatchValueKind.EXACT:
            return f"({subject} == {first})"
        assert match.second is not None
        second = ex.value(match.second)
        if match.kind is ir.MatchValueKind.MASK:
            width = ex.width(t)
            return f"(and_<{width}>({subject}, {second}) == and_<{width}>({first}, {second}))"
        less = f"less_{'s' if is_signed(t) else 'u'}<{ex.width(t)}>"
        return f"(!{less}({subject}, {first}) && !{less}({second}, {subject}))"

    def _member(self, statements: Statements, value_set: ir.ValueSet, subjects: list[tuple[Type, str]]) -> str:
        ex = statements.ex
        layout = value_set_layout(ex.width, value_set)
        if len(layout.fields) != len(subjects):
            raise unsupported(value_set.loc, f"value set {value_set.name} over {len(subjects)} expressions")
        values = [(ex.width(t), bitstrings.as_bits(t, text)) for t, text in subjects]
        found = lookup(layout, f"*s.{value_set_member(value_set)}", *key_words(ex, layout, values))
        return f"({found} != nullptr)"


def write_states(scope: Scope, unit: ir.ParserUnit) -> None:
    """The body of a parser's run(): false if it accepts, true if it rejects (`error` says why)."""
    _States(scope, unit).write()
