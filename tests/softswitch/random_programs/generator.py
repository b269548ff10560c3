"""Random well-typed v1model programs: `random_program(rng)`. p4c takes every one of them."""

from __future__ import annotations

import random

from generator_delivery import NOTE, Delivery
from generator_parsers import Parsers
from generator_scope import BOOL, Callable, Num, Options, Scope, Type, Variable, random_num
from generator_statements import Lines

OBSERVED_BITS = 3200
"""BMv2 lets a packet grow by 512 bytes."""


def indent(lines: Lines, by: int = 1) -> Lines:
    return ["    " * by + line for line in lines]


class Generator(Parsers):
    """One program."""

    def program(self) -> str:
        self.make_types()
        parts = ["#include <core.p4>", "#include <v1model.p4>", "", *self.type_lines()]
        if self.options.delivery:
            parts.append(NOTE)
        for _ in range(self.rng.randint(0, 3)):
            parts += self.function()
        if self.rng.random() < 0.5:
            parts += self.sub_parser()
        parts += self.parser()
        parts += self.checksum_control("V", verify=True)
        subs = []
        for i in range(self.rng.randint(0, 2)):
            name = f"Sub{i}"
            callee, lines = self.control(name, sub=True, controls=[])
            subs.append(callee)
            parts += lines
        _, ingress = self.control("I", sub=False, controls=subs)
        _, egress = self.control("E", sub=False, controls=[])
        parts += ingress + egress
        parts += self.checksum_control("C", verify=False)
        parts += ["control D(packet_out packet, in headers_t hdr) {", "    apply { packet.emit(hdr); }", "}"]
        parts.append("V1Switch(P(), V(), I(), E(), C(), D()) main;")
        return "\n".join(parts) + "\n"

    # Functions and actions --------------------------------------------------------------------------------------------

    def _params(self, directions: tuple[str, ...], most: int) -> tuple[tuple[str, Type], ...]:
        """The control plane's data are numbers on BMv2."""
        count = self.rng.randint(0, most)
        data = self.options.strict and directions == ("",)
        return tuple((self.rng.choice(directions), self._num() if data else self._param_type()) for _ in range(count))

    def _param_type(self) -> Type:
        return self.rng.choice((BOOL, self.enum, self.ser_enum)) if self.rng.random() < 0.2 else self._num()

    def _num(self) -> Num:
        return random_num(self.rng, self.options)

    def _bind(self, params: tuple[tuple[str, Type], ...], scope: Scope) -> tuple[list[str], Lines]:
        """Declarations of parameters, and statements that give those that only go out a value."""
        texts, lines = [], []
        own = {f"p{i}" for i in range(len(params))}
        scope.variables = [v for v in scope.variables if v.text not in own]
        for i, (direction, t) in enumerate(params):
            name = f"p{i}"
            texts.append(f"{direction} {t} {name}".strip())
            if direction == "out":
                lines.append(f"{name} = {self.ex.of(t, scope, 1)};")
            scope.variables.append(Variable(name, t, direction in ("out", "inout")))
        return texts, lines

    def function(self) -> Lines:
        name = self.fresh("f")
        scope = Scope(functions=list(self.functions), in_function=True)
        result = self._num() if self.rng.random() < 0.8 else None
        params = self._params(("in", "in", "inout", "out"), 3)
        texts, lines = self._bind(params, scope)
        scope.returns = result
        body = [*lines, *self.block(scope, 2, 3)]
        if result is not None:
            body.append(f"return {self.ex.of(result, scope)};")
        self.functions.append(Callable(name, params, result))
        return [f"{result or 'void'} {name}({', '.join(texts)}) {{", *indent(body), "}"]

    def action(self, scope: Scope, name: str, params: tuple[tuple[str, Type], ...]) -> Lines:
        inner = scope.nested()
        inner.in_action = True
        inner.valid = set()
        texts, lines = self._bind(params, inner)
        body = [*lines, *self.block(inner, 1, 3)]
        return [f"action {name}({', '.join(texts)}) {{", *indent(body), "}"]

    # Controls ---------------------------------------------------------------------------------------------------------

    def control(self, name: str, *, sub: bool, controls: list[Callable]) -> tuple[Callable, Lines]:
        scope = self.control_scope(with_standard=not sub)
        params: tuple[tuple[str, Type], ...] = ()
        head = ["inout headers_t hdr", "inout meta_t meta"]
        start: Lines = []
        if sub:
            params = self._params(("in", "out", "inout"), 2)
            texts, start = self._bind(params, scope)
            head += texts
        else:
            head.append("inout standard_metadata_t sm")
        lines: Lines = []
        for callee in controls:
            for _ in range(self.rng.choice((1, 1, 2))):
                instance = self.fresh("sub")
                lines.append(f"{callee.name}() {instance};")
                scope.controls.append(Callable(instance, callee.params))
        lines += self._state(scope)
        for _ in range(self.rng.randint(0, 2)):
            t = self._num()
            variable = self.fresh("v")
            lines.append(f"{t} {variable} = {self.ex.literal(t)};")
            scope.variables.append(Variable(variable, t))
        lines += self._actions_and_tables(scope)
        body = start + self.block(scope, 3)
        if not sub and self.options.delivery:
            delivery = Delivery(self.rng, self.ex)
            lines += delivery.declarations(name)
            body += delivery.statements(scope.nested(), name, egress=name == "E")
        if not sub:
            body += self._ending(scope, egress=name == "E")
        return Callable(name, params), [
            f"control {name}({', '.join(head)}) {{",
            *indent(lines),
            "    apply {",
            *indent(body, 2),
            "    }",
            "}",
        ]

    def _state(self, scope: Scope) -> Lines:
        lines: Lines = []
        for _ in range(self.rng.randint(0, 2)):
            t = Num(self.rng.choice((1, 8, 16, 32, 48, 64, 65, 128)), False)
            size = self.rng.choice((1, 4, 16))
            register = self.fresh("r")
            lines.append(f"register<{t}>({size}) {register};")
            scope.registers.append((register, t, size))
        if self.rng.random() < 0.4:
            counter = self.fresh("c")
            lines.append(f"counter(8, CounterType.packets_and_bytes) {counter};")
            scope.counters.append((counter, 8))
        return lines

    def _actions_and_tables(self, scope: Scope) -> Lines:
        lines: Lines = []
        for_tables: list[Callable] = []
        direct: list[Callable] = []
        for i in range(self.rng.randint(1, 4)):
            action = self.fresh("a")
            data = self._params(("",), 2)
            directed = self._params(("in", "inout", "out"), 2) if i % 2 else ()
            lines += self.action(scope, action, (*directed, *data))
            if directed:
                if not data:
                    direct.append(Callable(action, directed))
                if all(d == "in" for d, _ in directed):
                    for_tables.append(Callable(action, (*directed, *data)))
            else:
                for_tables.append(Callable(action, data))
        tables = []
        for _ in range(self.rng.randint(0, 3)) if for_tables else ():
            table = self.fresh("t")
            lines += self.table(table, scope, for_tables)
            tables.append((table, self.table_actions))
        scope.tables = tables
        scope.actions = direct
        return lines

    def _ending(self, scope: Scope, *, egress: bool) -> Lines:
        """Shows the variables in a header of their own, and says where the packet goes."""
        name = "hdr.seen_e" if egress else "hdr.seen_i"
        seen = self.seen_e if egress else self.seen_i
        lines = [f"{name}.setValid();"]
        outer = Scope(list(scope.variables), set(), self.functions)
        for field, t in seen:
            found = outer.of_type(t)
            own = [v for v in found if not v.header and not v.text.startswith("sm.")]
            value = self.rng.choice(own).text if own else self.ex.number(t, outer, 1)
            lines.append(f"{name}.{field} = {value};")
        if egress:
            return lines
        dice = self.rng.random()
        port = self.ex.number(Num(9), outer, 1)
        if dice < 0.1:
            return [*lines, f"if ({self.ex.truth(outer, 1)}) {{ mark_to_drop(sm); }} else {{ sm.egress_spec = 3; }}"]
        return [*lines, f"sm.egress_spec = (({port}) & 7) + 1;"]


def random_program(rng: random.Random, options: Options | None = None) -> str:
    """The source text."""
    return Generator(rng, options or Options()).program()
