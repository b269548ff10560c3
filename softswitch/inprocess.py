"""The switch in this process: a compiled program, frames in and out, and its state by P4Info name.

    switch = Switch(build(Path("l2.p4")))
    switch.insert("l2", {"h.eth.dst": 0x0200_0000_0001}, "forward", port=3)
    switch.inject(1, frame)  # [(3, frame)]

Names are those of P4Info, in full (`ingress.l2`) or any ending of them that is unique (`l2`). Values are ints. A match
is an int for exact and optional, (value, prefix length) for lpm, (value, mask) for ternary, (low, high) for range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from catchment.softswitch import native
from catchment.softswitch.build import BuiltProgram
from catchment.softswitch.entry import Entry, Match
from catchment.softswitch.errors import SwitchError

INVALID_ARGUMENT = 3
NOT_FOUND = 5

_KINDS = {"exact": 0, "lpm": 1, "ternary": 2, "range": 3, "optional": 4}


def _bytes(value: int) -> bytes:
    if value < 0:
        raise SwitchError(INVALID_ARGUMENT, f"negative value {value}")
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Switch:
    """One switch with one program. `seed` fixes random().

    A frame's loops may take `max_steps` rounds (65536 when left out), with all of its copies and passes; a frame that
    wants more is dropped ("too many loop steps") and what it left in registers and counters stays.

    With `in_callers` the state lies in memory that a forked child shares: both run the program on it, in turns, and
    when one is killed in the middle of a frame all registers are zero for the other.
    """

    def __init__(
        self, program: BuiltProgram, *, seed: int = 0, max_steps: int | None = None, in_callers: bool = False
    ) -> None:
        self._p4info = program.p4info
        runtime = native.runtime()
        steps = runtime.DEFAULT_MAX_STEPS if max_steps is None else max_steps
        if not 1 <= steps <= runtime.MOST_MAX_STEPS:
            raise SwitchError(INVALID_ARGUMENT, f"max_steps is 1 to {runtime.MOST_MAX_STEPS}, not {steps}")
        self.dataplane = runtime.Dataplane(seed, steps, in_callers)
        self.dataplane.load(str(program.shared_object))

    # Frames -----------------------------------------------------------------------------------------------------------

    def inject(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Runs one frame that came in by `port`; what left, in order: [(port, frame)]."""
        out: list[tuple[int, bytes]] = self.dataplane.inject(port, frame)
        return out

    def statistics(self, port: int) -> dict[str, Any]:
        """rx_packets, rx_bytes, tx_packets, tx_bytes, and `drops` by cause."""
        out: dict[str, Any] = self.dataplane.statistics(port)
        return out

    # Tables -----------------------------------------------------------------------------------------------------------

    def insert(
        self,
        table: str,
        match: Mapping[str, Match],
        action: str | tuple[str, int],
        *,
        priority: int = 0,
        idle_timeout_ns: int = 0,
        **params: int,
    ) -> None:
        """Adds an entry. `action` is a name with `params`, or ("member" | "group", id)."""
        info = self._find("tables", table)
        keys = self._match(info, match)
        self.dataplane.insert(info.preamble.id, keys, priority, self._action(action, params), idle_timeout_ns)

    def modify(
        self, table: str, match: Mapping[str, Match], action: str | tuple[str, int], *, priority: int = 0, **params: int
    ) -> None:
        """Changes an entry's action."""
        info = self._find("tables", table)
        self.dataplane.modify(info.preamble.id, self._match(info, match), priority, self._action(action, params), 0)

    def remove(self, table: str, match: Mapping[str, Match], *, priority: int = 0) -> None:
        """Deletes an entry."""
        info = self._find("tables", table)
        self.dataplane.remove(info.preamble.id, self._match(info, match), priority)

    def set_default(self, table: str, action: str | None, **params: int) -> None:
        """Sets the default action; None: back to the program's own."""
        info = self._find("tables", table)
        self.dataplane.set_default(info.preamble.id, None if action is None else self._action(action, params))

    def entries(self, table: str) -> list[Entry]:
        """All entries, oldest first; the default action is not among them."""
        info = self._find("tables", table)
        return [self._entry(info, raw) for raw in self.dataplane.entries(info.preamble.id)]

    def insert_member(self, profile: str, member: int, action: str, **params: int) -> None:
        """Adds a member to an action profile or selector."""
        _, number, data = self._action(action, params)
        self.dataplane.insert_member(self._id("action_profiles", profile), member, number, data)

    def insert_group(self, profile: str, group: int, members: Sequence[tuple[int, int]]) -> None:
        """Adds a group of (member, weight) to a selector."""
        self.dataplane.insert_group(self._id("action_profiles", profile), group, list(members))

    def write_value_set(self, name: str, members: Iterable[Sequence[Match]]) -> None:
        """Replaces the members of a parser value set; each has a match per field."""
        info = self._find("value_sets", name)
        raw = []
        for member in members:
            named = {m.name or str(m.id): v for m, v in zip(info.match, member, strict=True)}
            raw.append(self._fields(info.match, named, name))
        self.dataplane.write_value_set(info.preamble.id, raw)

    # Replication ------------------------------------------------------------------------------------------------------

    def multicast(self, group: int, ports: Iterable[int | tuple[int, int]]) -> None:
        """Creates or replaces a multicast group of ports or (port, egress_rid)."""
        self.dataplane.put_multicast_group(group, [p if isinstance(p, tuple) else (p, 0) for p in ports])

    def remove_multicast(self, group: int) -> None:
        """Deletes a multicast group."""
        self.dataplane.remove_multicast_group(group)

    def clone_session(self, session: int, ports: Iterable[int | tuple[int, int]], length: int = 0) -> None:
        """Creates or replaces a clone session; `length` bytes of each clone are kept (0: all)."""
        replicas = [p if isinstance(p, tuple) else (p, 0) for p in ports]
        self.dataplane.put_clone_session(session, replicas, length)

    # State ------------------------------------------------------------------------------------------------------------

    def read_register(self, name: str, index: int) -> int:
        """One cell."""
        return int.from_bytes(self.dataplane.read_register(self._id("registers", name), index)[0], "big")

    def read_registers(self, name: str) -> list[int]:
        """All cells."""
        return [int.from_bytes(v, "big") for v in self.dataplane.read_register(self._id("registers", name), None)]

    def write_register(self, name: str, index: int | None, value: int) -> None:
        """One cell, or all of them."""
        self.dataplane.write_register(self._id("registers", name), index, _bytes(value))

    def read_counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of one cell."""
        packets, length = self.dataplane.read_counter(self._id("counters", name), index)[0]
        return packets, length

    def write_counter(self, name: str, index: int | None, packets: int, length: int) -> None:
        """One cell, or all of them."""
        self.dataplane.write_counter(self._id("counters", name), index, packets, length)

    def write_meter(self, name: str, index: int | None, *, cir: int, cburst: int, pir: int, pburst: int) -> None:
        """Sets a meter's rates (per second) and bursts."""
        self.dataplane.write_meter(self._id("meters", name), index, cir, cburst, pir, pburst)

    # Messages ---------------------------------------------------------------------------------------------------------

    def on_digest(self, hook: Callable[[str, list[int]], None]) -> None:
        """Calls hook(digest's name, values) for every digest."""
        names = {d.preamble.id: d.preamble.name for d in self._p4info.digests}

        def call(number: int, members: list[bytes]) -> None:
            hook(names.get(number, str(number)), [int.from_bytes(m, "big") for m in members])

        self.dataplane.on_digest(call)

    def on_log(self, hook: Callable[[str], None]) -> None:
        """Calls hook(text) for every log_msg and failed assertion, and for frames beyond the step limit (one line a
        second at most)."""
        self.dataplane.on_log(hook)
        self.dataplane.on_step_limit(hook)

    # Names ------------------------------------------------------------------------------------------------------------

    def _find(self, section: str, name: str) -> Any:
        messages = getattr(self._p4info, section)
        exact = [m for m in messages if m.preamble.name == name]
        found = exact or [m for m in messages if m.preamble.name.endswith("." + name)]
        if len(found) != 1:
            names = ", ".join(m.preamble.name for m in (found or messages))
            problem = "is ambiguous" if found else "is unknown"
            raise SwitchError(NOT_FOUND, f"{name} {problem} among the {section}: {names}")
        return found[0]

    def _id(self, section: str, name: str) -> int:
        return int(self._find(section, name).preamble.id)

    def _action(self, action: str | tuple[str, int], params: Mapping[str, int]) -> tuple[Any, ...]:
        if isinstance(action, tuple):
            return action
        info = self._find("actions", action)
        known = {p.name: p.id for p in info.params}
        if set(known) != set(params):
            wanted = ", ".join(known) or "none"
            raise SwitchError(INVALID_ARGUMENT, f"{info.preamble.name} takes {wanted}; given: {', '.join(params)}")
        return ("action", info.preamble.id, {known[k]: _bytes(v) for k, v in params.items()})

    def _match(self, info: Any, match: Mapping[str, Match]) -> list[tuple[int, int, bytes, bytes, int]]:
        return self._fields(info.match_fields, match, info.preamble.name)

    def _fields(self, fields: Any, match: Mapping[str, Match], where: str) -> list[tuple[int, int, bytes, bytes, int]]:
        unknown = set(match) - {f.name for f in fields} - {str(f.id) for f in fields}
        if unknown:
            known = ", ".join(f.name for f in fields)
            raise SwitchError(INVALID_ARGUMENT, f"{where} has no field {', '.join(sorted(unknown))}; it has {known}")
        out = []
        for f in fields:
            value = match.get(f.name, match.get(str(f.id)))
            if value is not None:
                out.append(_field(f.id, self._kind(f), value, f"{where}.{f.name}"))
        return out

    def _kind(self, f: Any) -> str:
        return str(f.DESCRIPTOR.fields_by_name["match_type"].enum_type.values_by_number[f.match_type].name).lower()

    def _entry(self, info: Any, raw: Mapping[str, Any]) -> Entry:
        fields = {f.id: f.name for f in info.match_fields}
        match: dict[str, Match] = {}
        for number, kind, value, mask, prefix in raw["match"]:
            first = int.from_bytes(value, "big")
            second = prefix if kind == _KINDS["lpm"] else int.from_bytes(mask, "big")
            pair = kind in (_KINDS["lpm"], _KINDS["ternary"], _KINDS["range"])
            match[fields[number]] = (first, second) if pair else first
        kind, number, *rest = raw["action"]
        if kind != "action":
            return Entry(match, f"{kind} {number}", {}, raw["priority"], raw.get("counter"), raw["is_const"])
        action = next(a for a in self._p4info.actions if a.preamble.id == number)
        names = {p.id: p.name for p in action.params}
        params = {names[i]: int.from_bytes(v, "big") for i, v in rest[0].items()}
        return Entry(match, action.preamble.name, params, raw["priority"], raw.get("counter"), raw["is_const"])


def _field(number: int, kind: str, value: Match, where: str) -> tuple[int, int, bytes, bytes, int]:
    if kind in ("exact", "optional"):
        if isinstance(value, tuple):
            raise SwitchError(INVALID_ARGUMENT, f"{where} is {kind}: one value")
        return (number, _KINDS[kind], _bytes(value), b"", 0)
    if not isinstance(value, tuple):
        raise SwitchError(INVALID_ARGUMENT, f"{where} is {kind}: a pair of values")
    if kind == "lpm":
        return (number, _KINDS[kind], _bytes(value[0]), b"", value[1])
    return (number, _KINDS[kind], _bytes(value[0]), _bytes(value[1]), 0)
