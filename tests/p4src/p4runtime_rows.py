"""Rows and counters over P4Runtime messages, by the names in a P4Info."""

from __future__ import annotations

from typing import Any

from switch_rows import Row

from catchment.wire.generated import p4info_pb2, p4runtime_pb2


def canonical(value: int) -> bytes:
    """The shortest big-endian string, as P4Runtime wants it."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class Names:
    """Finds objects of a P4Info by the last part of their names."""

    def __init__(self, info: p4info_pb2.P4Info) -> None:
        self.info = info
        self.tables = {t.preamble.name.split(".")[-1]: t for t in info.tables}
        self.actions = {a.preamble.id: a for a in info.actions}

    def action(self, table: str, name: str) -> Any:
        """The action called `name` of `table`."""
        for ref in self.tables[table].action_refs:
            action = self.actions[ref.id]
            if action.preamble.name.split(".")[-1] == name:
                return action
        raise KeyError(f"{table} has no action {name}")

    def entry(self, row: Row) -> p4runtime_pb2.TableEntry:
        """The message for `row`."""
        table = self.tables[row.table]
        entry = p4runtime_pb2.TableEntry(table_id=table.preamble.id, priority=row.priority)
        entry.is_default_action = not row.match
        for field in table.match_fields:
            if field.name in row.match:
                value = row.match[field.name]
                match = entry.match.add(field_id=field.id)
                if isinstance(value, tuple):
                    match.ternary.value, match.ternary.mask = (canonical(v) for v in value)
                else:
                    match.exact.value = canonical(value)
        action = self.action(row.table, row.action)
        entry.action.action.action_id = action.preamble.id
        for param in action.params:
            entry.action.action.params.add(param_id=param.id, value=canonical(row.params[param.name]))
        return entry
