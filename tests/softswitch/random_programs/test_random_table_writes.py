"""Tables written at random between packets: the same entries, the same refusals, the same choice of an entry."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
header key_h { bit<8> a; bit<8> b; bit<16> c; bit<72> d; bit<16> t1; bit<16> t2; bit<16> t3; bit<16> t4; bit<16> t5; }
struct headers_t { key_h k; }
struct meta_t { bit<1> unused; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.k); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action one(bit<16> x) { hdr.k.t1 = x; }
    action two(bit<16> x) { hdr.k.t2 = x; }
    action three(bit<16> x) { hdr.k.t3 = x; }
    action four(bit<16> x) { hdr.k.t4 = x; }
    action five(bit<16> x) { hdr.k.t5 = x; }
    action none() {}
    table exact_t { key = { hdr.k.a : exact; hdr.k.d : exact; } actions = { one; none; } default_action = none; }
    table lpm_t { key = { hdr.k.a : exact; hdr.k.d : lpm; } actions = { two; none; } default_action = none; }
    table ternary_t { key = { hdr.k.a : ternary; hdr.k.d : ternary; } actions = { three; none; } }
    table range_t { key = { hdr.k.a : range; hdr.k.c : range; hdr.k.b : exact; } actions = { four; none; } size = 40; }
    table mixed_t {
        key = { hdr.k.a : optional; hdr.k.b : ternary; hdr.k.c : lpm; hdr.k.d : exact; }
        actions = { five; none; }
        default_action = five(9);
    }
    apply { exact_t.apply(); lpm_t.apply(); ternary_t.apply(); range_t.apply(); mixed_t.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""

WIDTHS = {"a": 8, "b": 8, "c": 16, "d": 72}
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "exact_t": ("one", {"a": "exact", "d": "exact"}),
    "lpm_t": ("two", {"a": "exact", "d": "lpm"}),
    "ternary_t": ("three", {"a": "ternary", "d": "ternary"}),
    "range_t": ("four", {"a": "range", "c": "range", "b": "exact"}),
    "mixed_t": ("five", {"a": "optional", "b": "ternary", "c": "lpm", "d": "exact"}),
}


def _value(rng: random.Random, width: int) -> int:
    """Few values, so that keys meet."""
    return rng.choice((0, 1, 2, 3, (1 << width) - 1, 1 << (width - 1), 5 << (width - 4)))


def _match(rng: random.Random, kind: str, width: int) -> Any:
    value, top = _value(rng, width), (1 << width) - 1
    if kind in ("exact", "optional"):
        return None if kind == "optional" and rng.random() < 0.3 else value
    if rng.random() < 0.15:
        return None
    if kind == "lpm":
        length = rng.choice((0, 1, width // 2, width - 2, width))
        return (value & top & ~((1 << (width - length)) - 1), length)
    if kind == "ternary":
        mask = rng.choice((top, 3, 1 << (width - 1), top >> 1, rng.randint(0, top)))
        return (value & mask if rng.random() < 0.95 else value, mask)
    other = _value(rng, width)
    return (min(value, other), max(value, other)) if rng.random() < 0.95 else (max(value, other), min(value, other))


def _outcome(switch: Any, call: str, *args: Any, **named: Any) -> int:
    try:
        getattr(switch, call)(*args, **named)
    except SwitchError as error:
        return error.code
    return 0


def _write(rng: random.Random, both: tuple[Switch, InterpretedSwitch], known: list[tuple[str, Any, int]]) -> bool:
    """One write to both; whether it was taken."""
    table = rng.choice(list(TABLES))
    action, keys = TABLES[table]
    match = {f"hdr.k.{f}": _match(rng, kind, WIDTHS[f]) for f, kind in keys.items()}
    match = {name: m for name, m in match.items() if m is not None}
    needs = bool(set(keys.values()) & {"ternary", "range", "optional"})
    priority = (rng.randint(1, 4) if needs else 0) if rng.random() < 0.97 else rng.choice((0, 1, -1))
    call = rng.choice(("insert", "insert", "insert", "modify", "remove", "set_default"))
    if call in ("modify", "remove") and known and rng.random() < 0.8:
        table, match, priority = rng.choice(known)
        action = TABLES[table][0]
    data = {"x": rng.randrange(65536)}
    if call == "set_default":
        outcomes = [_outcome(s, call, table, action, **data) for s in both]
    elif call == "remove":
        outcomes = [_outcome(s, call, table, match, priority=priority) for s in both]
    else:
        outcomes = [_outcome(s, call, table, match, action, priority=priority, **data) for s in both]
    assert outcomes[0] == outcomes[1], (call, table, match, priority, outcomes)
    if outcomes[0] == 0 and call == "insert":
        known.append((table, match, priority))
    if outcomes[0] == 0 and call == "remove" and (table, match, priority) in known:
        known.remove((table, match, priority))
    return outcomes[0] == 0


@pytest.mark.sampled(4)
def test_tables_written_between_packets(rng: random.Random, tmp_path: Path) -> None:
    source = tmp_path / "tables.p4"
    source.write_text(PROGRAM)
    both = (Switch(build(source), seed=1), InterpretedSwitch(check_file(source).program))
    known: list[tuple[str, Any, int]] = []
    taken = hits = 0
    for number in range(1500):
        if rng.random() < 0.5:
            taken += _write(rng, both, known)
            continue
        fields = b"".join(_value(rng, width).to_bytes(width // 8, "big") for width in WIDTHS.values())
        compiled, interpreted = (switch.inject(1, fields + bytes(10)) for switch in both)
        assert compiled == interpreted, (number, fields.hex(), known)
        hits += compiled[0][1][-10:] != bytes(10)
    for table in TABLES:
        assert len(both[0].entries(table)) == len(both[1].state.tables[f"I.{table}"].rows)
    assert taken > 100
    assert hits > 100
