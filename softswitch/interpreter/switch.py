"""A switch that interprets its program: the same calls as `softswitch.inprocess.Switch`, one Python step at a time.

switch = InterpretedSwitch(check_file(Path("l2.p4")).program)
switch.insert("l2", {"hdr.ethernet.dst": 0x020000000001}, "forward", port=3)
switch.inject(1, frame, trace=print)  # [(3, frame)]
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from catchment.softswitch.compiler import ir
from catchment.softswitch.entry import Entry, Match
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.interpreter.entries import BoundAction, Row, TableState, Target, data_of
from catchment.softswitch.interpreter.pipeline import Pipeline, Replication
from catchment.softswitch.interpreter.state import find, instances, make_state
from catchment.softswitch.interpreter.user_externs import UserExterns
from catchment.softswitch.interpreter.values import from_bits, to_bits

INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = 3, 5, 6, 7
DEFAULT_MAX_STEPS = 65536
MAX_FRAME = 9728
PORTS = 512


class InterpretedSwitch:
    """One switch with one program. `seed` fixes random(); a frame's loops may take `max_steps` rounds.

    `externs` is a Python file with the externs that the program declares itself (docs/howto/user-externs.md).
    """

    def __init__(
        self,
        program: ir.Program,
        *,
        seed: int = 0,
        max_steps: int = DEFAULT_MAX_STEPS,
        externs: Path | None = None,
    ) -> None:
        self.program = program
        self.state = make_state(program, UserExterns(externs))
        self.replication = Replication()
        self.pipeline = Pipeline(program, self.state, self.replication, max_steps=max_steps, seed=seed)
        started = time.monotonic_ns()
        self.pipeline.now_us = lambda: (time.monotonic_ns() - started) // 1000
        self.drops: Counter[str] = Counter()
        """Packets dropped so far, by cause."""

    # Frames -----------------------------------------------------------------------------------------------------------

    def inject(self, port: int, frame: bytes, trace: Callable[[str], None] | None = None) -> list[tuple[int, bytes]]:
        """Runs one frame that came in by `port`; returns the frames that left, in order. `trace` gets each step."""
        if not 0 <= port < PORTS or len(frame) > MAX_FRAME:
            raise SwitchError(
                INVALID_ARGUMENT,
                f"a frame of {len(frame)} bytes by port {port}: there are ports 0 to {PORTS - 1}, and frames of "
                f"{MAX_FRAME} bytes at most",
            )
        self.pipeline.trace.sink = trace
        self.pipeline.trace.depth = 0
        out = self.pipeline.process(port, frame)
        self.drops.update(self.pipeline.drops)
        return out

    # Tables -----------------------------------------------------------------------------------------------------------

    def insert(
        self,
        table: str,
        match: Mapping[str, Match],
        action: str | Target,
        *,
        priority: int = 0,
        **params: int,
    ) -> None:
        """Adds an entry."""
        state = self._table(table)
        wants = state.wants(match)
        state.check_room(wants, priority)
        state.rows.append(Row(wants, priority, self._action(state, action, params)))

    def modify(
        self, table: str, match: Mapping[str, Match], action: str | Target, *, priority: int = 0, **params: int
    ) -> None:
        """Changes an entry's action."""
        state = self._table(table)
        row = state.existing(state.wants(match), priority)
        row.action = self._action(state, action, params)

    def remove(self, table: str, match: Mapping[str, Match], *, priority: int = 0) -> None:
        """Deletes an entry."""
        state = self._table(table)
        state.rows.remove(state.existing(state.wants(match), priority))

    def set_default(self, table: str, action: str | None, **params: int) -> None:
        """Sets the default action; None: back to the program's own."""
        state = self._table(table)
        if state.table.const_default:
            raise SwitchError(PERMISSION_DENIED, f"the default action of {state.name} is const")
        if action is None:
            state.default = TableState.of(state.name, state.owner, state.table, state.profile).default
        else:
            state.default = self._bound(state, action, params, as_default=True)

    def entries(self, table: str) -> list[Entry]:
        """All entries, oldest first; the default action is not among them."""
        state = self._table(table)
        return [self._entry(state, row) for row in state.rows]

    def _entry(self, state: TableState, row: Row) -> Entry:
        shown = ((f.name, f.shown(want)) for f, want in zip(state.fields, row.wants, strict=True))
        match = {name: value for name, value in shown if value is not None}
        counter = (row.packets, row.bytes) if state.table.counters is not None else None
        if not isinstance(row.action, BoundAction):
            return Entry(match, "{} {}".format(*row.action), {}, row.priority, counter, row.is_const)
        action = row.action.choice.action
        name = ir.full_name("" if action.is_global else state.owner.path, action.cp_name)
        params = {p.name: to_bits(v, p.type) for p, v in zip(action.data, row.action.data, strict=True)}
        return Entry(match, name, params, row.priority, counter, row.is_const)

    def insert_member(self, profile: str, member: int, action: str, **params: int) -> None:
        """Adds a member to an action profile or selector."""
        state = self.state.profiles[find(self.state.profiles, profile, "action profiles")]
        user = next(t for t in self.state.tables.values() if t.profile is state)
        if member in state.members:
            raise SwitchError(ALREADY_EXISTS, f"{state.name} has a member {member}")
        state.members[member] = self._bound(user, action, params)

    def insert_group(self, profile: str, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Adds a group of (member, weight) to a selector."""
        state = self.state.profiles[find(self.state.profiles, profile, "action profiles")]
        if group in state.groups:
            raise SwitchError(ALREADY_EXISTS, f"{state.name} has a group {group}")
        state.groups[group] = [member for member, weight in members for _ in range(weight)]

    def write_value_set(self, name: str, members: Iterable[Sequence[Match]]) -> None:
        """Replaces the members of a parser value set; each has a match per field."""
        state = self.state.value_sets[find(self.state.value_sets, name, "value sets")]
        state.members = [
            tuple(f.want(match, state.name) for f, match in zip(state.fields, member, strict=True))
            for member in members
        ]

    # Replication ------------------------------------------------------------------------------------------------------

    def multicast(self, group: int, ports: Iterable[int | tuple[int, int]]) -> None:
        """Creates or replaces a multicast group of ports or (port, egress_rid)."""
        self.replication.groups[group] = [p if isinstance(p, tuple) else (p, 0) for p in ports]

    def clone_session(self, session: int, ports: Iterable[int | tuple[int, int]], length: int = 0) -> None:
        """Creates or replaces a clone session; `length` bytes of each clone are kept (0: all)."""
        self.replication.sessions[session] = ([p if isinstance(p, tuple) else (p, 0) for p in ports], length)

    # State ------------------------------------------------------------------------------------------------------------

    def read_registers(self, name: str) -> list[int]:
        """All cells, as bits."""
        register = self.state.registers[find(self.state.registers, name, "registers")]
        return [to_bits(cell, register.type) for cell in register.cells]

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """One cell, or all of them."""
        register = self.state.registers[find(self.state.registers, name, "registers")]
        for i in range(len(register.cells)) if index is None else (index,):
            register.write(i, from_bits(value, register.type))

    def read_counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell."""
        cell = self.state.counters[find(self.state.counters, name, "counters")][index]
        return cell.packets, cell.bytes

    def write_counter(self, name: str, index: int | None, packets: int, length: int) -> None:
        """One cell, or all of them."""
        cells = self.state.counters[find(self.state.counters, name, "counters")]
        for cell in cells if index is None else [cells[index]]:
            cell.packets, cell.bytes = packets, length

    def write_meter(self, name: str, index: int | None, *, cir: int, cburst: int, pir: int, pburst: int) -> None:
        """Sets a meter's rates (per second) and bursts."""
        cells = self.state.meters[find(self.state.meters, name, "meters")]
        for cell in cells if index is None else [cells[index]]:
            cell.configure(self.pipeline.now_us(), cir=cir, cburst=cburst, pir=pir, pburst=pburst)

    # Messages ---------------------------------------------------------------------------------------------------------

    def on_digest(self, hook: Callable[[str, list[int]], None]) -> None:
        """Calls hook(digest's name, values) for every digest."""
        self.pipeline.on_digest = hook

    def on_log(self, hook: Callable[[str], None]) -> None:
        """Calls hook(text) for every log_msg and failed assertion, and for frames beyond the step limit."""
        self.pipeline.on_log = hook

    # Names ------------------------------------------------------------------------------------------------------------

    def _table(self, name: str) -> TableState:
        return self.state.tables[find(self.state.tables, name, "tables")]

    def _action(self, state: TableState, action: str | Target, params: Mapping[str, int]) -> BoundAction | Target:
        if isinstance(action, str):
            if state.profile is not None:
                raise SwitchError(INVALID_ARGUMENT, f"{state.name} takes members of {state.profile.name}")
            return self._bound(state, action, params)
        if state.profile is None:
            raise SwitchError(INVALID_ARGUMENT, f"{state.name} has no profile")
        kind, number = action
        if number not in (state.profile.members if kind == "member" else state.profile.groups):
            raise SwitchError(NOT_FOUND, f"{state.profile.name} has no {kind} {number}")
        return action

    def _bound(
        self, state: TableState, action: str, params: Mapping[str, int], *, as_default: bool = False
    ) -> BoundAction:
        choices = {
            ir.full_name("" if c.action.is_global else state.owner.path, c.action.cp_name): c
            for c in state.table.actions
        }
        known = {a for i in instances(self.program) if isinstance(i.unit, ir.ControlUnit) for a in _actions(i)}
        full = find(dict.fromkeys(known | set(choices)), action, "actions")
        choice = choices.get(full)
        if choice is None or (choice.table_only if as_default else choice.default_only):
            raise SwitchError(INVALID_ARGUMENT, f"{state.name} does not take {full} here")
        return BoundAction(choice, data_of(choice.action, params, full))


def _actions(instance: ir.Instance) -> set[str]:
    assert isinstance(instance.unit, ir.ControlUnit)
    return {
        ir.full_name("" if c.action.is_global else instance.path, c.action.cp_name)
        for table in instance.unit.tables
        for c in table.actions
    }
