"""Random uses of what a packet can become besides itself: clones, digests, copies to a group; and of meters."""

from __future__ import annotations

import random

from generator_expressions import Expressions
from generator_scope import Num, Scope
from generator_statements import Lines

NOTE = "struct note_t { bit<32> number; bit<8> kind; int<16> offset; }"
"""What digests carry."""
SESSIONS = (1, 2, 3)
"""Clone sessions that programs name; the last is never set up, no more than the last of the groups."""
GROUPS = (1, 2, 3)
METER_CELLS = 4


class Delivery:
    """Writes the end of a control."""

    def __init__(self, rng: random.Random, expressions: Expressions) -> None:
        self.rng = rng
        self.ex = expressions

    def declarations(self, name: str) -> Lines:
        """A meter of packets or bytes, and a register of the colours that it has given."""
        kind = self.rng.choice(("packets", "bytes"))
        return [
            f"meter({METER_CELLS}, MeterType.{kind}) meter_{name};",
            f"register<bit<32>>({METER_CELLS}) colours_{name};",
        ]

    def statements(self, scope: Scope, name: str, *, egress: bool) -> Lines:
        """Each of them or not, where something holds."""
        makers = [self._meter(scope, name), self._digest(scope, egress), self._clone(egress)]
        if not egress:
            makers.append([f"sm.mcast_grp = 16w{self.rng.choice(GROUPS)};"])
        lines: Lines = []
        for made in makers:
            if self.rng.random() < 0.6:
                # A clone in egress comes to egress again.
                first = "sm.instance_type == 0 && " if egress else ""
                lines += [f"if ({first}({self.ex.truth(scope, 1)})) {{", *("    " + line for line in made), "}"]
        return lines

    def _clone(self, egress: bool) -> Lines:
        return [f"clone(CloneType.{'E2E' if egress else 'I2E'}, 32w{self.rng.choice(SESSIONS)});"]

    def _digest(self, scope: Scope, egress: bool) -> Lines:
        if egress:  # the specification of v1model has digests in ingress alone
            return []
        number, kind, offset = (self.ex.number(Num(*t), scope, 1) for t in ((32, False), (8, False), (16, True)))
        return [f"digest<note_t>(1, {{ {number}, {kind}, {offset} }});"]

    def _meter(self, scope: Scope, name: str) -> Lines:
        colour, cell = f"colour_{name}", f"cell_{name}"
        return [
            f"bit<32> {cell} = ({self.ex.number(Num(32), scope, 1)}) % {METER_CELLS};",
            f"bit<32> {colour} = 0;",
            f"meter_{name}.execute_meter({cell}, {colour});",
            f"colours_{name}.write({cell}, {colour} + 1);",
        ]
