"""Carries out the statements of an STF file on an in-process switch and compares what leaves with what was expected."""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from catchment.softswitch.entry import Match
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch
from catchment.softswitch.stf import language
from catchment.softswitch.stf.language import (
    Add,
    Call,
    CheckCounter,
    Command,
    Expect,
    NoPacket,
    Packet,
    SetDefault,
    StfError,
)

AnySwitch = Switch | InterpretedSwitch

DROP_PORT = 511
HIGHEST_PRIORITY = 1 << 24

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(slots=True)
class Report:
    """`failures`: what did not hold; empty is success. `received`: the frames that left, by port."""

    packets: int = 0
    expectations: int = 0
    failures: list[str] = field(default_factory=list)
    received: Mapping[int, Sequence[bytes]] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return not self.failures


def _fits(expected: Expect, frame: bytes) -> bool:
    if expected.data is None:
        return True
    digits = frame.hex().upper()
    if len(digits) < len(expected.data) or (expected.exact and len(digits) > len(expected.data)):
        return False
    return all(e in ("*", d) for e, d in zip(expected.data, digits, strict=False))


def _with_stars(text: str, width: int) -> tuple[int, int]:
    """A value whose `*` digits do not matter: (value, mask)."""
    bits = {"0x": 4, "0b": 1}.get(text[:2].lower())
    if bits is None:
        return language.number(text), (1 << width) - 1
    value = mask = 0
    for digit in text[2:]:
        ones = (1 << bits) - 1
        value = value << bits | (0 if digit == "*" else int(digit, 1 << bits))
        mask = mask << bits | (0 if digit == "*" else ones)
    if "*" not in text:
        mask = (1 << width) - 1
    return value, mask & ((1 << width) - 1)


class _Runner:
    def __init__(self, switch: AnySwitch, p4info: Any, file: str) -> None:
        self.switch = switch
        self.p4info = p4info
        self.file = file
        self.report = Report()
        self.received: dict[int, list[bytes]] = defaultdict(list)
        self.report.received = self.received
        self.expected: list[tuple[int, Expect]] = []
        self.nodes: list[tuple[int, list[int]]] = []
        self.groups: dict[int, list[int]] = {}
        self.sessions: dict[int, list[tuple[int, int]]] = {}
        self.entries: dict[str, int] = {}

    def run(self, statements: Sequence[language.Statement]) -> Report:
        """Carries out all of them. Frames are not judged in a test that is about counters only."""
        for statement in statements:
            try:
                self._carry_out(statement)
            except (SwitchError, ValueError, StopIteration) as error:
                raise StfError(f"{self.file}:{statement.line}: {error}") from error
        bodies = [statement.body for statement in statements]
        about_counters = any(isinstance(b, CheckCounter) for b in bodies)
        if not about_counters or any(isinstance(b, Expect | NoPacket) for b in bodies):
            self.report.failures += judge(self.file, self.expected, self.received)
        return self.report

    def _carry_out(self, statement: language.Statement) -> None:
        body = statement.body
        if isinstance(body, Packet):
            self.report.packets += 1
            for port, frame in self.switch.inject(body.port, body.data):
                self.received[port].append(frame)
        elif isinstance(body, Expect):
            self.report.expectations += 1
            self.expected.append((statement.line, body))
        elif isinstance(body, NoPacket):
            pass  # what leaves without being expected is a failure anyhow
        elif isinstance(body, Add):
            self._add(body)
        elif isinstance(body, SetDefault):
            table = self._find(self.p4info.tables, body.table)
            action, arguments = self._action(table, body.call)
            self.switch.set_default(table.preamble.name, action, **arguments)
        elif isinstance(body, CheckCounter):
            self._check_counter(statement.line, body)
        else:
            self._command(body)

    # Tables -----------------------------------------------------------------------------------------------------------

    def _find(self, messages: Any, name: str) -> Any:
        exact = [m for m in messages if name in (m.preamble.name, m.preamble.alias)]
        found = exact or [m for m in messages if m.preamble.name.endswith(name)]
        if len(found) != 1:
            raise ValueError(f"{name} is {'ambiguous' if found else 'unknown'}")
        return found[0]

    def _action(self, table: Any, call: Call) -> tuple[str, dict[str, int]]:
        numbers = {ref.id for ref in table.action_refs}
        action = self._find([a for a in self.p4info.actions if a.preamble.id in numbers], call.action)
        return action.preamble.name, {name: language.number(value) for name, value in call.arguments}

    def _field(self, table: Any, name: str) -> Any:
        name = re.sub(r"\$(\d+)", r"[\1]", name)  # stack$0 is how p4c's older tests write stack[0]
        names = [name, name.replace("$valid$", "isValid()"), f"{name.removesuffix('.valid')}.$valid$"]
        for wanted in names:
            for f in table.match_fields:
                if f.name == wanted or f.name.endswith("." + wanted):
                    return f
        raise ValueError(f"table {table.preamble.name} has no key {name}")

    def _match(self, f: Any, text: str) -> Match | None:
        kind = f.DESCRIPTOR.fields_by_name["match_type"].enum_type.values_by_number[f.match_type].name
        if kind == "RANGE":
            low, _, high = text.replace("->", "..").partition("..")
            first = language.number(low)
            return (first, language.number(high) if high else first)
        value_text, _, length = text.partition("/")
        value, mask = _with_stars(value_text, f.bitwidth)
        if kind == "LPM":
            prefix = language.number(length) if length else mask.bit_count()
            ones = ((1 << prefix) - 1) << (f.bitwidth - prefix)
            return (value & ones, prefix) if prefix else None
        if kind == "TERNARY":
            if length:
                mask = language.number(length)
            return (value & mask, mask) if mask else None
        if kind == "OPTIONAL" and mask == 0:
            return None
        return value

    def _add(self, body: Add) -> None:
        table = self._find(self.p4info.tables, body.table)
        action, arguments = self._action(table, body.call)
        matches = {}
        for name, text in body.matches:
            f = self._field(table, name)
            match = self._match(f, text)
            if match is not None:
                matches[f.name] = match
        kinds = {
            f.DESCRIPTOR.fields_by_name["match_type"].enum_type.values_by_number[f.match_type].name
            for f in table.match_fields
        }
        priority = 0
        if kinds & {"TERNARY", "RANGE", "OPTIONAL"}:
            # Without a priority of its own, an entry comes after those before it.
            number = len(self.switch.entries(table.preamble.name))
            priority = HIGHEST_PRIORITY - number if body.priority is None else body.priority + 1
        self.switch.insert(table.preamble.name, matches, action, priority=priority, **arguments)
        if body.name is not None:
            self.entries[body.name] = len(self.switch.entries(table.preamble.name)) - 1

    # State ------------------------------------------------------------------------------------------------------------

    def _check_counter(self, line: int, body: CheckCounter) -> None:
        self.report.expectations += 1
        text = body.index.removeprefix("$")
        index = self.entries[text] if text in self.entries else language.number(text)
        direct = [c for c in self.p4info.direct_counters if c.preamble.name.endswith(body.counter)]
        if direct:
            table = next(t for t in self.p4info.tables if t.preamble.id == direct[0].direct_table_id)
            packets, length = self.switch.entries(table.preamble.name)[index].counter or (0, 0)
        else:
            packets, length = self.switch.read_counter(
                self._find(self.p4info.counters, body.counter).preamble.name, index
            )
        if body.unit is None:
            return
        found = packets if body.unit == "packets" else length
        if not _OPERATORS[body.operator](found, body.value):
            where = f"{self.file}:{line}: {body.counter}({body.index})"
            self.report.failures.append(f"{where} {body.unit} is {found}, not {body.operator} {body.value}")

    def _command(self, body: Command) -> None:
        method = getattr(self, f"_do_{body.name}", None)
        if method is not None:
            method(*body.words)
        elif not body.name.endswith(("_read", "_get", "_get_rates")) and body.name != "wait":
            raise ValueError(f"{body.name} is not carried out")

    def _do_remove(self, what: str) -> None:
        if what.lower() != "all":
            raise ValueError("only `remove all` is known")
        for table in self.p4info.tables:
            if not table.is_const_table:
                for entry in self.switch.entries(table.preamble.name):
                    if entry.is_const:
                        continue
                    self.switch.remove(table.preamble.name, entry.match, priority=entry.priority)

    def _do_mirroring_add(self, session: str, port: str) -> None:
        self._session(language.number(session), [(language.number(port), 0)])

    def _do_mirroring_add_mc(self, session: str, group: str) -> None:
        self._session(language.number(session), self._replicas(language.number(group)))

    def _session(self, session: int, replicas: list[tuple[int, int]]) -> None:
        self.sessions[session] = [*self.sessions.get(session, []), *replicas]
        self.switch.clone_session(session, self.sessions[session])

    def _do_mirroring_delete(self, session: str) -> None:
        self.sessions.pop(language.number(session), None)
        self.switch.clone_session(language.number(session), [])

    def _do_mc_mgrp_create(self, group: str) -> None:
        self.groups[language.number(group)] = []
        self._publish(language.number(group))

    def _do_mc_node_create(self, instance: str, *ports: str) -> None:
        self.nodes.append((language.number(instance), [language.number(p) for p in ports]))

    def _do_mc_node_update(self, node: str, *ports: str) -> None:
        instance, _ = self.nodes[language.number(node)]
        self.nodes[language.number(node)] = (instance, [language.number(p) for p in ports])
        for group, members in self.groups.items():
            if language.number(node) in members:
                self._publish(group)

    def _do_mc_node_associate(self, group: str, node: str) -> None:
        self.groups[language.number(group)].append(language.number(node))
        self._publish(language.number(group))

    def _replicas(self, group: int) -> list[tuple[int, int]]:
        return [(port, self.nodes[n][0]) for n in self.groups[group] for port in self.nodes[n][1]]

    def _publish(self, group: int) -> None:
        self.switch.multicast(group, self._replicas(group))

    def _do_counter_write(self, name: str, index: str, packets: str, length: str) -> None:
        found = self._find(self.p4info.counters, name).preamble.name
        self.switch.write_counter(found, language.number(index), language.number(packets), language.number(length))

    def _do_register_write(self, name: str, index: str, value: str) -> None:
        found = self._find(self.p4info.registers, name).preamble.name
        self.switch.write_register(found, language.number(index), language.number(value))

    def _do_register_reset(self, name: str) -> None:
        self.switch.write_register(self._find(self.p4info.registers, name).preamble.name, None, 0)

    def _do_meter_set_rates(self, name: str, index: str, *rates: str) -> None:
        self._rates(name, language.number(index), rates)

    def _do_meter_array_set_rates(self, name: str, *rates: str) -> None:
        self._rates(name, None, rates)

    def _rates(self, name: str, index: int | None, rates: Sequence[str]) -> None:
        """BMv2 counts in units per microsecond: committed first, then peak."""
        pairs = [rate.partition(":") for rate in rates]
        values = [(round(float(rate) * 1e6), language.number(burst)) for rate, _, burst in pairs]
        (cir, cburst), (pir, pburst) = values[0], values[-1]
        found = self._find(self.p4info.meters, name).preamble.name
        self.switch.write_meter(found, index, cir=cir, cburst=cburst, pir=pir, pburst=pburst)


def judge(file: str, expectations: Sequence[tuple[int, Expect]], received: Mapping[int, Sequence[bytes]]) -> list[str]:
    """What does not hold, per port in order. `expect PORT` without data takes whatever else comes out there."""
    out: list[str] = []
    by_port: dict[int, list[tuple[int, Expect]]] = defaultdict(list)
    for line, expect in expectations:
        by_port[expect.port].append((line, expect))
    for port in sorted({*received, *by_port}):
        wanted = [(line, e) for line, e in by_port[port] if e.data is not None]
        any_frame = len(wanted) < len(by_port[port])
        frames = received.get(port, [])
        for (line, expected), frame in zip(wanted, frames, strict=False):
            if not _fits(expected, frame):
                tail = "$" if expected.exact else ""
                out.append(f"{file}:{line}: port {port}: expected {expected.data}{tail}, got {frame.hex().upper()}")
        for line, expected in wanted[len(frames) :]:
            out.append(f"{file}:{line}: port {port}: expected {expected.data}, got nothing")
        if any_frame and not frames:
            out.append(f"{file}: port {port}: a frame was expected, got nothing")
        if not any_frame:
            out += [f"{file}: port {port}: unexpected frame {f.hex().upper()}" for f in frames[len(wanted) :]]
    return out


def play(switch: Switch, p4info: Any, statements: Sequence[language.Statement]) -> dict[int, list[bytes]]:
    """Carries out statements without judging them: the frames that left, by port."""
    runner = _Runner(switch, p4info, "<stf>")
    runner.run(statements)
    return dict(runner.received)


def run(switch: AnySwitch, p4info: Any, text: str, file: str = "<stf>") -> Report:
    """Runs the test on a fresh switch. Raises StfError for a statement that cannot be carried out."""
    return _Runner(switch, p4info, file).run(language.parse(text, file))
