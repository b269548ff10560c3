"""Refuses, before anything is written, what every switch refuses: numbers without bits, priorities, replicas.

Errors are `ValueError` or `TypeError`, and say what is wrong in which field; whoever calls says where that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.client.key_fields import MatchType
from catchment.controlplane.client.replication import Replica

_INT32, _INT64, LARGEST_NUMBER = (1 << 31) - 1, (1 << 63) - 1, (1 << 32) - 1
LARGEST = {
    "priority": _INT32, "idle_timeout_ns": _INT64, "member": LARGEST_NUMBER, "group": LARGEST_NUMBER,
    "weight": _INT32, "watch_port": LARGEST_NUMBER, "max_size": _INT32,
    "port": LARGEST_NUMBER, "instance": LARGEST_NUMBER, "packet_length": _INT32, "class_of_service": _INT32,
    "cir": _INT64, "cburst": _INT64, "pir": _INT64, "pburst": _INT64,
}  # fmt: skip
"""Field of a line -> its largest number, as P4Runtime has bits for it."""
_MORE_LINES = ("replicas", "members", "choices", "meter")
_RANKED = {MatchType.TERNARY, MatchType.RANGE, MatchType.OPTIONAL}
_HEX = re.compile(r"([0-9a-fA-F]{2})*")


def check_numbers(line: Any) -> None:
    """Make sure that every number of a line, and of what is in it, has a value that P4Runtime can carry."""
    for each in _parts(line):
        for name, value in each.items():
            most = LARGEST.get(name) if isinstance(name, str) else None
            if most is not None and isinstance(value, int) and not 0 <= value <= most:
                raise ValueError(f"{name}: {value} is not between 0 and {most}")


def _parts(line: Any) -> Iterator[Mapping[Any, Any]]:
    lines = line if isinstance(line, list) else [line]
    for each in lines:
        if isinstance(each, Mapping):
            yield each
            for name in _MORE_LINES:
                more = each.get(name)
                yield from (one for one in (more if isinstance(more, list) else [more]) if isinstance(one, Mapping))


def whole(line: Mapping[str, Any], name: str) -> int:
    """A field that is a whole number, also as text; 0 where it is left out."""
    value = line.get(name, 0)
    try:
        return int(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {value!r} is not a whole number") from None


def metadata(line: Mapping[str, Any]) -> bytes:
    """The bytes of the field `metadata`, which are written in hexadecimal; none where it is left out."""
    text = str(line.get("metadata", ""))
    if not _HEX.fullmatch(text):
        raise ValueError(f"metadata: {text!r} is not bytes in hexadecimal, two digits each, as in '00ff'")
    return bytes.fromhex(text)


def check_entry(entry: TableEntry, client: SwitchClient) -> None:
    """Make sure that an entry has a priority where entries of its table can overlap, and only there."""
    fields = client.p4info.find("table", entry.table).match_fields
    ranked = any(one.match_type in _RANKED for one in fields)
    if entry.is_default and (entry.match or entry.priority):
        raise ValueError("a default action has neither match nor priority; leave them out")
    if ranked and entry.priority == 0 and not entry.is_default:
        raise ValueError(
            "priority is missing; entries with ternary, range or optional fields need one above 0 (larger wins)"
        )
    if not ranked and entry.priority:
        raise ValueError(
            f"priority: {entry.priority} is given, but no field is ternary, range or optional; leave it out"
        )


def check_replicas(replicas: Iterable[Replica]) -> None:
    """Make sure that no copy is there twice."""
    seen = set()
    for one in replicas:
        if one in seen:
            raise ValueError(f"port {one.port} with instance {one.instance} is there twice")
        seen.add(one)
