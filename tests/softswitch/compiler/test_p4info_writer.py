"""P4Info: ids worked out from the hash rule by hand, structure against goldens, order against the program's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from p4_programs import check, place, program

from catchment.checkout import ROOT
from catchment.softswitch.compiler import CompileError, compile_program
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.p4info.jenkins import one_at_a_time
from catchment.softswitch.compiler.p4info.symbols import IdKind, SymbolTable
from catchment.wire.generated import p4info_pb2


def info_of(tmp_path: Path, source: str) -> Any:
    path = tmp_path / "program.p4"
    path.write_text(source)
    return compile_program(path).p4info


def test_hash_of_published_values() -> None:
    """The test values of the hash's author: "a" and the pangram."""
    assert one_at_a_time(b"a") == 0xCA2E9442
    assert one_at_a_time(b"The quick brown fox jumps over the lazy dog") == 0x519E91F5
    assert one_at_a_time(b"") == 0


def test_id_of_noaction_is_the_well_known_one() -> None:
    symbols = SymbolTable()
    symbols.add(IdKind.ACTION, "NoAction")
    symbols.freeze()
    assert symbols.id(IdKind.ACTION, "NoAction") == 21257015


def test_collisions_probe_upward_in_sorted_order() -> None:
    taken = 0x01000000 | (one_at_a_time(b"b.second") & 0xFFFFFF)
    symbols = SymbolTable()
    symbols.add(IdKind.ACTION, "b.second")
    symbols.add(IdKind.ACTION, "user", (annotation("id", taken),))
    symbols.freeze()
    assert symbols.id(IdKind.ACTION, "user") == taken
    assert symbols.id(IdKind.ACTION, "b.second") == taken + 1


def test_aliases_are_the_shortest_unique_suffixes() -> None:
    symbols = SymbolTable()
    for name in ("in.a.t", "in.b.t", "in.b.u", "t2"):
        symbols.add(IdKind.TABLE, name)
    assert [symbols.alias(n) for n in ("in.a.t", "in.b.t", "in.b.u", "t2")] == ["a.t", "b.t", "u", "t2"]


def test_actions_of_sub_controls_come_where_the_instance_is_declared(tmp_path: Path) -> None:
    """Actions are ordered as by p4c: it puts a sub-control's declarations in the place of its instance."""
    table = "table t { key = { hdr.h.a : exact; } actions = { A } } apply { INNERt.apply(); }"
    inner = f"control Inner(inout headers hdr) {{ action deep() {{ }} {table} }}"
    inner = inner.replace("A }", "deep; }").replace("INNER", "")
    outer = "control Outer(inout headers hdr) { action early() { } Inner() inner; action late() { } "
    outer += table.replace("A }", "early; late; }").replace("INNER", "inner.apply(hdr); ") + " }"
    source = program(top=inner + outer, locals_="Outer() outer; action own() { }", body="outer.apply(hdr); own();")
    names = [a.preamble.alias for a in info_of(tmp_path, source).actions]
    assert [n for n in names if n != "NoAction"] == ["early", "deep", "late", "own"]


def test_a_profile_lists_its_tables_by_name(tmp_path: Path) -> None:
    tables = "".join(
        f"table {t} {{ key = {{ hdr.h.a : exact; }} actions = {{ NoAction; }} implementation = shared; }}"
        for t in "zma"
    )
    source = program(locals_="action_profile(8) shared; " + tables, body="z.apply(); m.apply(); a.apply();")
    info = info_of(tmp_path, source)
    names = {t.preamble.id: t.preamble.alias for t in info.tables}
    assert [names[i] for i in info.action_profiles[0].table_ids] == ["a", "m", "z"]


def annotation(name: str, value: int) -> Any:
    from catchment.softswitch.compiler.ir import Annotation

    return Annotation(name, (value,))


LOCALS = """
    direct_counter(CounterType.bytes) hits;
    register<bit<48>>(512) state;
    counter(64, CounterType.packets_and_bytes) totals;
    @name("short") action set_x(@id(7) bit<8> v, bit<16> w) { meta.x = v; meta.y = w; }
    @brief("what it is for") table t {
        key = {
            hdr.h.a : exact;
            hdr.h.isValid() : ternary;
            hdr.h.w[15:0] : lpm @name("low");
            hdr.h.c & 0xff0 : range;
        }
        actions = { set_x; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = hits;
        const entries = { (1, true, 0x1200 &&& 0xff00, 3 .. 9) : set_x(5, 6); }
        size = 77;
    }
"""
BODY = "t.apply(); totals.count(0); state.write(0, 1);"


def test_structure(tmp_path: Path) -> None:
    info = info_of(tmp_path, program(locals_=LOCALS, body=BODY))
    expected = text_format.Parse(
        f"""
        pkg_info {{ arch: "v1model" }}
        tables {{
          preamble {{ id: {named(0x02, "I.t")} name: "I.t" alias: "t" doc {{ brief: "what it is for" }} }}
          match_fields {{ id: 1 name: "hdr.h.a" bitwidth: 8 match_type: EXACT }}
          match_fields {{ id: 2 name: "hdr.h.$valid$" bitwidth: 1 match_type: TERNARY }}
          match_fields {{ id: 3 name: "low" bitwidth: 16 match_type: LPM }}
          match_fields {{ id: 4 name: "hdr.h.c & 0xff0" bitwidth: 16 match_type: RANGE }}
          action_refs {{ id: {named(0x01, "I.short")} }}
          action_refs {{ id: 21257015 annotations: "@defaultonly" scope: DEFAULT_ONLY }}
          const_default_action_id: 21257015
          initial_default_action {{ action_id: 21257015 }}
          direct_resource_ids: {named(0x13, "I.hits")}
          size: 77 is_const_table: true has_initial_entries: true
        }}
        actions {{ preamble {{ id: 21257015 name: "NoAction" alias: "NoAction" annotations: '@noWarn("unused")' }} }}
        actions {{
          preamble {{ id: {named(0x01, "I.short")} name: "I.short" alias: "short" }}
          params {{ id: 7 name: "v" bitwidth: 8 }}
          params {{ id: 2 name: "w" bitwidth: 16 }}
        }}
        counters {{ preamble {{ id: {named(0x12, "I.totals")} name: "I.totals" alias: "totals" }} spec {{ unit: BOTH }}
          size: 64 }}
        direct_counters {{ preamble {{ id: {named(0x13, "I.hits")} name: "I.hits" alias: "hits" }}
          spec {{ unit: BYTES }} direct_table_id: {named(0x02, "I.t")} }}
        registers {{ preamble {{ id: {named(0x16, "I.state")} name: "I.state" alias: "state" }}
          type_spec {{ bitstring {{ bit {{ bitwidth: 48 }} }} }} size: 512 }}
        type_info {{}}
        """,
        p4info_pb2.P4Info(),
    )
    assert text_format.MessageToString(info) == text_format.MessageToString(expected)


def named(kind: int, name: str) -> int:
    return kind << 24 | (one_at_a_time(name.encode()) & 0xFFFFFF)


def test_sub_controls_have_hierarchical_names(tmp_path: Path) -> None:
    top = """
    control Leaf(inout bit<8> x)(bit<32> size) {
        register<bit<8>>(size) r;
        apply { r.write(0, x); }
    }
    control Branch(inout bit<8> x) {
        Leaf(16) first;
        @name("other") Leaf(32) second;
        apply { first.apply(x); second.apply(x); }
    }
    """
    info = info_of(
        tmp_path, program(top=top, locals_="Branch() a; Branch() b;", body="a.apply(meta.x); b.apply(meta.x);")
    )
    registers = [(r.preamble.name, r.preamble.alias, r.size) for r in info.registers]
    assert registers == [
        ("I.a.first.r", "a.first.r", 16),
        ("I.a.other.r", "a.other.r", 32),
        ("I.b.first.r", "b.first.r", 16),
        ("I.b.other.r", "b.other.r", 32),
    ]


def test_what_is_not_used_or_hidden_is_not_shown(tmp_path: Path) -> None:
    locals_ = """
    action never() {}
    action used(bit<8> v) { meta.x = v; }
    table unused { actions = { used; } }
    @hidden table hidden { actions = { NoAction; } }
    table shown { actions = { used; } }
    """
    info = info_of(tmp_path, program(locals_=locals_, body="hidden.apply(); shown.apply();"))
    assert [t.preamble.name for t in info.tables] == ["I.shown"]
    assert sorted(a.preamble.name for a in info.actions) == ["I.used", "NoAction"]


def test_clashing_ids_are_refused(tmp_path: Path) -> None:
    locals_ = "@id(5) table a { actions = { NoAction; } } @id(5) table b { actions = { NoAction; } }"
    with pytest.raises(CompileError, match="used for another"):
        info_of(tmp_path, program(locals_=locals_, body="a.apply(); b.apply();"))


@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_the_switch_program_s_golden(lanes: int) -> None:
    compiled = compile_program(ROOT / "p4src/luwu.p4", [ROOT / "p4src"], {"LANES": str(lanes)})
    golden = (ROOT / f"p4src/p4info/luwu_{lanes}.p4info.txtpb").read_text()
    assert compiled.p4info_text == golden
    parsed = p4info_pb2.P4Info()
    parsed.ParseFromString(compiled.p4info_binary)
    assert parsed == compiled.p4info


VALUE_SET = (
    "value_set<%s>(4) vs; state start { packet.extract(hdr.h); transition select(%s) { vs: accept; default: accept; } }"
)
VALUE_SETS = [
    ("bit<8>", "hdr.h.a", [(1, "", 8)]),
    ("int<8>", "hdr.h.s", [(1, "", 8)]),
    ("bool", "meta.flag", [(1, "", 1)]),
    ("kind_t", "(kind_t)hdr.h.c", [(1, "", 16)]),
    ("pair_t", "hdr.h.a, hdr.h.c", [(7, "one", 8), (2, "other", 16)]),
    ("outer_t", "hdr.h.a, hdr.h.c", [(1, "inner", 8), (2, "other", 16)]),
    ("tuple<bit<8>, bit<16>>", "hdr.h.a, hdr.h.c", [(1, "f0", 8), (2, "f1", 16)]),
    ("tuple<bool, kind_t, int<8>>", "meta.flag, (kind_t)hdr.h.c, hdr.h.s", [(1, "f0", 1), (2, "f1", 16), (3, "f2", 8)]),
]


@pytest.mark.parametrize(("element", "selectors", "fields"), VALUE_SETS, ids=[row[0] for row in VALUE_SETS])
def test_fields_of_value_sets(tmp_path: Path, element: str, selectors: str, fields: list[tuple[int, str, int]]) -> None:
    top = "enum bit<16> kind_t { A = 1, B = 2, C = 3 } struct pair_t { @id(7) bit<8> one; bit<16> other; }"
    top += " struct inner_t { bit<8> one; } struct outer_t { inner_t inner; bit<16> other; }"
    path = tmp_path / "program.p4"
    path.write_text(program(top=top, parser=VALUE_SET % (element, selectors)))
    compiled = compile_program(path)
    (value_set,) = compiled.p4info.value_sets
    assert [(m.id, m.name, m.bitwidth) for m in value_set.match] == fields
    assert all(m.match_type == m.EXACT for m in value_set.match)
    code = generate(compiled.ir, compiled.p4info, "sets")
    assert all(f"set.fields.push_back({{{number}U, " in code for number, _, _ in fields)


@pytest.mark.parametrize(
    ("element", "selectors", "what"),
    [
        ("error", "sm.parser_error", "of type error"),
        ("plain_t", "plain_t.A", "of type plain_t"),
        ("tuple<bit<8>, plain_t>", "hdr.h.a, plain_t.A", "f1 of type plain_t"),
        ("wide_t", "hdr.h.w ++ hdr.h.w ++ hdr.h.w", "a range of 96 bits"),
    ],
)
def test_value_sets_without_members_that_a_control_plane_writes(
    tmp_path: Path, element: str, selectors: str, what: str
) -> None:
    top = "enum plain_t { A, B }"
    top += " struct wide_t { @match(range) bit<96> x; }"
    path = tmp_path / "program.p4"
    source, line, _ = place(program(top=top, parser="<!>" + VALUE_SET % (element, selectors)))
    path.write_text(source)
    compiled = compile_program(path)
    with pytest.raises(CompileError, match=what) as refusal:
        generate(compiled.ir, compiled.p4info, "sets")
    assert refusal.value.diagnostics[0].loc.line == line


@pytest.mark.parametrize(
    ("kind", "objects"),
    [
        ("register", 'register<bit<8>>(2) a; @name("a") register<bit<8>>(2) b;'),
        ("counter", 'counter(2, CounterType.packets) a; @name("a") counter(2, CounterType.packets) b;'),
        ("register", "INNER"),
    ],
)
def test_two_objects_of_one_name_are_refused_where_there_is_a_p4info(tmp_path: Path, kind: str, objects: str) -> None:
    """Like p4c, which takes such programs when it writes no P4Info."""
    inner = "control Inner(inout headers hdr) { register<bit<8>>(2) a; apply { a.write(0, hdr.h.a); } }"
    direct = objects == "INNER"
    source = program(
        top=inner if direct else "",
        locals_="" if direct else objects,
        body="Inner.apply(hdr); Inner.apply(hdr);" if direct else "",
    )
    name = "I.Inner.a" if direct else "I.a"
    with pytest.raises(CompileError, match=f"{name}: conflicting control plane name of this {kind}"):
        info_of(tmp_path, source)
    assert make_p4info(check(tmp_path, source).program, unique_names=False) is not None
