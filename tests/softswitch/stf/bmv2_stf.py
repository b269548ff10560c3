"""An STF test on BMv2: its statements as commands of simple_switch_CLI."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bmv2_switch import Bmv2Switch

from catchment.softswitch.stf.language import (
    Add,
    Call,
    CheckCounter,
    Command,
    Expect,
    Packet,
    SetDefault,
    Statement,
    number,
)

LOWEST_PRIORITY = 1 << 24


@dataclass(slots=True)
class Bmv2Stf:
    """Carries out statements; `received` holds frames per port."""

    switch: Bmv2Switch
    json_path: Path
    received: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    tables: list[dict[str, Any]] = field(default_factory=list)
    actions: dict[int, dict[str, Any]] = field(default_factory=dict)
    widths: dict[tuple[str, str], int] = field(default_factory=dict)
    entries: int = 0

    def __post_init__(self) -> None:
        description = json.loads(self.json_path.read_text())
        self.tables = [t for p in description["pipelines"] for t in p["tables"]]
        self.actions = {a["id"]: a for a in description["actions"]}
        self.widths = _field_widths(description)

    def run(self, statements: list[Statement], *, one_by_one: bool = False) -> dict[int, list[bytes]]:
        """All of them; what left. `one_by_one`: no packet comes in before the last one has left."""
        sent = expected = 0
        for statement in statements:
            body = statement.body
            if isinstance(body, Expect):
                expected += 1
            if isinstance(body, Expect | CheckCounter):
                continue
            if sent and (one_by_one or not isinstance(body, Packet)):
                self.gather(expected)
                sent = 0
            if isinstance(body, Packet):
                self.switch.send(body.port, body.data)
                sent += 1
            else:
                self.carry_out(body)
        self.gather(expected)
        return self.received

    def gather(self, expected: int) -> None:
        """Wait for as many frames in all as are expected, then for more; where none are missing, a pause must do."""
        missing = max(0, expected - sum(map(len, self.received.values())))
        for port, frame in self.switch.collect(0.1 if missing else 0.5, missing, patience=60.0):
            self.received[port].append(frame)

    def carry_out(self, body: object) -> None:
        """One statement that configures the switch."""
        if isinstance(body, Add):
            self._add(body)
        elif isinstance(body, SetDefault):
            table = self._table(body.table)
            action = self._action(table, body.call)
            self.switch.command(f"table_set_default {table['name']} {action['name']} {_arguments(action, body.call)}")
        elif isinstance(body, Command) and body.name not in ("wait", "remove") and not body.name.endswith("_get"):
            self.switch.command(" ".join([body.name, *body.words]))

    def _table(self, name: str) -> dict[str, Any]:
        exact = [t for t in self.tables if t["name"] == name]
        found = exact or [t for t in self.tables if t["name"].endswith(name)]
        assert len(found) == 1, f"{name}: {[t['name'] for t in found]}"
        return found[0]

    def _action(self, table: dict[str, Any], call: Call) -> dict[str, Any]:
        choices = [self.actions[number] for number in table["action_ids"]]
        exact = [a for a in choices if a["name"] == call.action]
        found = exact or [a for a in choices if a["name"].endswith(call.action)]
        assert found, call.action
        return found[0]

    def _add(self, body: Add) -> None:
        table = self._table(body.table)
        action = self._action(table, body.call)
        keys = []
        for key in table["key"]:
            text = next((v for n, v in body.matches if _names(key, n)), None)
            keys.append(_key(key["match_type"], text, self._width(key)))
        line = f"table_add {table['name']} {action['name']} {' '.join(keys)} => {_arguments(action, body.call)}"
        if table["match_type"] in ("ternary", "range"):
            # STF's larger priority wins, BMv2's smaller one; without one, entries come in order.
            line += f" {self.entries if body.priority is None else LOWEST_PRIORITY - body.priority}"
        self.entries += 1
        self.switch.command(line)

    def _width(self, key: dict[str, Any]) -> int:
        target = key["target"]
        return self.widths.get(tuple(target), 32) if isinstance(target, list) else 1


def _field_widths(description: dict[str, Any]) -> dict[tuple[str, str], int]:
    types = {t["name"]: {f[0]: f[1] for f in t["fields"]} for t in description["header_types"]}
    widths = {}
    for header in description["headers"]:
        for name, width in types[header["header_type"]].items():
            widths[(header["name"], name)] = width if isinstance(width, int) else 0
        widths[(header["name"], "$valid$")] = 1
    return widths


def _names(key: dict[str, Any], name: str) -> bool:
    full = key.get("name") or ".".join(key["target"])
    name = re.sub(r"\$(\d+)", r"[\1]", name)
    plain = name.replace("$valid$", "isValid()")
    return any(full == n or full.endswith("." + n) for n in (name, plain, name + ".$valid$"))


def _stars(text: str, width: int) -> tuple[int, int]:
    bits = {"0x": 4, "0b": 1}.get(text[:2].lower())
    ones = (1 << width) - 1
    if bits is None or "*" not in text:
        return number(text), ones
    value = mask = 0
    for digit in text[2:]:
        value = value << bits | (0 if digit == "*" else int(digit, 1 << bits))
        mask = mask << bits | (0 if digit == "*" else (1 << bits) - 1)
    return value & ones, mask & ones


def _key(kind: str, text: str | None, width: int) -> str:
    if kind == "range":
        low, _, high = (text or f"0..{(1 << width) - 1}").partition("..")
        return f"{number(low)}->{number(high or low)}"
    if text is None:
        return {"ternary": "0&&&0", "optional": "0&&&0", "lpm": "0/0"}.get(kind, "0")
    value_text, _, length = text.partition("/")
    value, mask = _stars(value_text, width)
    if kind in ("ternary", "optional"):
        return f"{value}&&&{number(length) if length else mask}"
    if kind == "lpm":
        return f"{value}/{number(length) if length else mask.bit_count()}"
    return str(value)


def _arguments(action: dict[str, Any], call: Call) -> str:
    given = dict(call.arguments)
    return " ".join(str(number(given[p["name"]])) for p in action["runtime_data"])
