"""What the IR of controls, parsers, tables and instances looks like, and that it keeps its promises."""

from __future__ import annotations

from pathlib import Path

import pytest
from ir_invariants import violations
from p4_programs import check, program

from catchment.checkout import ROOT
from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.types import BitType, HeaderType, IntType, SerEnumType, TupleType


def ingress(result: ir.Program) -> ir.ControlUnit:
    unit = result.pipeline["ig"].unit
    assert isinstance(unit, ir.ControlUnit)
    return unit


def parser(result: ir.Program) -> ir.ParserUnit:
    unit = result.pipeline["p"].unit
    assert isinstance(unit, ir.ParserUnit)
    return unit


def checked(tmp_path: Path, source: str) -> ir.Program:
    result = check(tmp_path, source).program
    assert violations(result) == []
    return result


LANES = """
control Lane(inout bit<32> x)(bit<32> size, register<bit<32>> shared) {
    register<bit<32>>(size) sum;
    apply { sum.write(0, x); shared.write(1, x); }
}
"""


def test_one_unit_for_each_specialisation_and_one_instance_each(tmp_path: Path) -> None:
    locals_ = "register<bit<32>>(2) common; Lane(16, common) a; Lane(16, common) b; Lane(32, common) c;"
    body = "a.apply(meta.z); b.apply(meta.z); c.apply(meta.z);"
    result = checked(tmp_path, program(top=LANES, locals_=locals_, body=body))
    decls = {d.name: d for d in ingress(result).instances}
    assert decls["a"].unit is decls["b"].unit
    assert decls["a"].unit is not decls["c"].unit
    tree = result.pipeline["ig"].children
    a, b, common = tree["a"], tree["b"], tree["common"]
    assert isinstance(a, ir.Instance) and isinstance(b, ir.Instance)
    assert a.children["shared"] is b.children["shared"] is common
    assert a.children["sum"] is not b.children["sum"]
    names = [i.full_name for i in (a.children["sum"], b.children["sum"]) if isinstance(i, ir.ExternInstance)]
    assert names == ["I.a.sum", "I.b.sum"]
    units = list(result.units)
    assert units.index(decls["a"].unit) < units.index(ingress(result))  # type: ignore[arg-type] # a unit, as asserted


def test_direct_application_makes_an_instance_named_after_its_type(tmp_path: Path) -> None:
    top = "control Sub(inout bit<8> x) { register<bit<8>>(1) r; apply { r.write(0, x); } }"
    result = checked(tmp_path, program(top=top, body="Sub.apply(meta.x);"))
    (sub,) = (c for c in result.pipeline["ig"].children.values() if isinstance(c, ir.Instance))
    assert sub.path == "I.Sub"


def test_generic_control(tmp_path: Path) -> None:
    top = "control Copy<T>(in T from, out T to) { apply { to = from; } }"
    body = "small.apply(meta.x, hdr.h.a); wide.apply(meta.z, hdr.h.w);"
    result = checked(tmp_path, program(top=top, locals_="Copy<bit<8>>() small; Copy<bit<32>>() wide;", body=body))
    widths = [d.unit.params[0].type for d in ingress(result).instances if d.unit is not None]
    assert widths == [BitType(8), BitType(32)]


def test_direct_application_of_a_generic_control(tmp_path: Path) -> None:
    top = "control g<T>(inout T x) { apply { T y = x; x = y; } }"
    result = checked(tmp_path, program(top=top, body="g<bit<8>>.apply(meta.x); g<bit<16>>.apply(meta.y);"))
    applied = [s.instance.unit for s in ingress(result).body.body if isinstance(s, ir.UnitApply)]
    assert [unit.params[0].type for unit in applied if unit is not None] == [BitType(8), BitType(16)]


def test_table(tmp_path: Path) -> None:
    locals_ = """
    action a(in bit<8> bound, bit<8> data) { meta.x = bound + data; }
    table t {
        key = { hdr.h.a : ternary; hdr.h.w : lpm; hdr.h.s : range; }
        actions = { a(hdr.h.b); @tableonly NoAction; }
        default_action = a(hdr.h.b, 9);
        entries = {
            priority = 10 : (0x10 &&& 0xf0, 0x0a000000 &&& 0xff000000, -3 .. 4) : a(1);
            (_, _, _) : NoAction();
            const (5, 0x01020304, 7) : a(2);
        }
        priority_delta = 3;
        size = 16;
    }
    """
    (table,) = ingress(checked(tmp_path, program(locals_=locals_, body="t.apply();"))).tables
    assert [k.kind for k in table.keys] == ["ternary", "lpm", "range"]
    first, second = table.actions
    assert isinstance(first.bound[0], ir.FieldRef) and first.bound[1] is None
    assert second.table_only
    assert [v.value for v in table.default_action.data if isinstance(v, ir.Literal)] == [9]
    assert [e.priority for e in table.entries] == [10, 7, 4]
    assert [e.is_const for e in table.entries] == [False, False, True]
    assert [m.kind.value for m in table.entries[0].matches] == ["mask", "mask", "range"]
    low = table.entries[0].matches[2].first
    assert isinstance(low, ir.Literal) and (low.value, low.type) == (-3, IntType(8))


def test_table_without_default_runs_noaction(tmp_path: Path) -> None:
    locals_ = "action a() {} table t { key = { hdr.h.a : exact; } actions = { a; } }"
    (table,) = ingress(checked(tmp_path, program(locals_=locals_, body="t.apply();"))).tables
    assert table.default_action.choice.action.name == "NoAction"
    assert [c.default_only for c in table.actions] == [False, True]


def test_switch_on_action_run_merges_labels(tmp_path: Path) -> None:
    locals_ = "action a() {} action b() {} action c() {} table t { actions = { a; b; c; } default_action = a; }"
    body = "switch (t.apply().action_run) { a: b: { meta.x = 1; } default: { meta.x = 2; } }"
    (statement,) = ingress(checked(tmp_path, program(locals_=locals_, body=body))).body.body
    assert isinstance(statement, ir.SwitchAction)
    assert [[x.name for x in case.actions] for case in statement.cases] == [["a", "b"], []]
    assert [case.is_default for case in statement.cases] == [False, True]


def test_select(tmp_path: Path) -> None:
    text = """
    value_set<bit<16>>(4) ports;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.c) {
            (1, ports): more;
            (0x10 &&& 0xf0, 1 .. 9): more;
            (_, _): accept;
            default: reject;
        }
    }
    state more { packet.extract(hdr.stack.next); transition select(hdr.stack.last.a) { 0: accept; _: more; } }
    """
    states = parser(checked(tmp_path, program(parser=text))).states
    select = states["start"].transition
    assert isinstance(select, ir.Select)
    kinds = [[m.kind.value for m in c.matches] for c in select.cases]
    assert kinds == [["exact", "value_set"], ["mask", "range"], ["any", "any"], ["any", "any"]]
    assert [c.next_state for c in select.cases] == ["more", "more", "accept", "reject"]
    again = states["more"].transition
    assert isinstance(again, ir.Select)
    field = again.exprs[0]
    assert isinstance(field, ir.FieldRef) and isinstance(field.base, ir.StackLast)


def test_implicit_casts_are_explicit(tmp_path: Path) -> None:
    top = "enum bit<8> kind_t { A = 1, B = 0xf0 }"
    body = "meta.x = kind_t.B; kind_t k = (kind_t) meta.x; bool same = k == kind_t.A; meta.flag = same; meta.x = k + 1;"
    first, second, third, _, last = ingress(checked(tmp_path, program(top=top, body=body))).body.body
    assert isinstance(first, ir.Assign) and isinstance(first.value, ir.Literal)
    assert (first.value.value, first.value.type) == (0xF0, BitType(8))
    assert isinstance(second, ir.Declare) and isinstance(second.init, ir.Cast)
    assert isinstance(second.init.type, SerEnumType)
    assert isinstance(third, ir.Declare) and isinstance(third.init, ir.Binary)
    assert isinstance(third.init.left.type, SerEnumType)
    assert isinstance(last, ir.Assign) and isinstance(last.value, ir.Binary)
    assert isinstance(last.value.left, ir.Cast)


def test_structure_initialisers_are_in_field_order(tmp_path: Path) -> None:
    body = "h_t v = {w = 5, s = -1, c = 3, b = 2, a = meta.x}; hdr.h = v; h_t d = {a = 7, ...}; hdr.h = d; hdr.h = {#};"
    first, _, third, _, last = ingress(checked(tmp_path, program(body=body))).body.body
    assert isinstance(first, ir.Declare) and isinstance(first.init, ir.Aggregate)
    assert isinstance(first.init.type, HeaderType)
    values = [m.value if isinstance(m, ir.Literal) else "x" for m in first.init.members]
    assert values == ["x", 2, 3, -1, 5]
    assert isinstance(third, ir.Declare) and isinstance(third.init, ir.Aggregate)
    assert [m.value for m in third.init.members if isinstance(m, ir.Literal)] == [7, 0, 0, 0, 0]
    assert isinstance(last, ir.Assign) and isinstance(last.value, ir.InvalidHeader)


def test_generic_functions_are_specialised_once_for_each_type(tmp_path: Path) -> None:
    top = "T pick<T>(in bool first, in T a, in T b) { if (first) { return a; } return b; }"
    body = "meta.x = pick(true, meta.x, 3); meta.x = pick(false, meta.x, hdr.h.a); meta.z = pick<bit<32>>(true, 1, 2);"
    result = checked(tmp_path, program(top=top, body=body))
    assert [(f.name, f.return_type) for f in result.functions] == [("pick", BitType(8)), ("pick", BitType(32))]
    assert len({f.unique for f in result.functions}) == 2


def test_arguments_come_in_parameter_order(tmp_path: Path) -> None:
    top = "void f(in bit<8> a, out bit<16> b, in bit<8> c = 7) { b = a ++ c; }"
    body = "f(b = meta.y, a = 1); f(2, _);"
    first, second = ingress(checked(tmp_path, program(top=top, body=body))).body.body
    assert isinstance(first, ir.Evaluate) and isinstance(first.expr, ir.FunctionCall)
    a, b, c = first.expr.args
    assert isinstance(a, ir.Literal) and isinstance(b, ir.FieldRef) and isinstance(c, ir.Literal)
    assert (a.value, b.name, c.value) == (1, "y", 7)
    assert isinstance(second, ir.Evaluate) and isinstance(second.expr, ir.FunctionCall)
    assert isinstance(second.expr.args[1], ir.DontCare)


def test_a_list_given_to_an_extern_is_a_tuple(tmp_path: Path) -> None:
    body = "hash(meta.y, HashAlgorithm.crc16, 16w0, {hdr.h.a, hdr.h.w}, 16w100);"
    (statement,) = ingress(checked(tmp_path, program(body=body))).body.body
    assert isinstance(statement, ir.Evaluate) and isinstance(statement.expr, ir.ExternCall)
    assert statement.expr.args[3].type == TupleType((BitType(8), BitType(32)))
    assert statement.expr.type_args[2] == statement.expr.args[3].type


def test_field_lists_are_evaluated(tmp_path: Path) -> None:
    top = """
    enum bit<8> lists_t { Kept = 3 }
    const bit<8> other = 5;
    struct inner_t { @field_list(lists_t.Kept, other + 1) bit<8> f; @field_list(0) bit<8> g; }
    """
    result = checked(tmp_path, program(top=top))
    (inner,) = (s for s in result.structs if s.name == "inner_t")
    assert [f.annotations[0].values for f in inner.fields] == [(3, 6), (0,)]


def test_compound_assignment_evaluates_its_target_once(tmp_path: Path) -> None:
    top = "bit<8> next(inout bit<8> x) { x = x + 1; return x; }"
    (statement,) = ingress(checked(tmp_path, program(top=top, body="hdr.stack[next(meta.x)].a |= 1;"))).body.body
    assert isinstance(statement, ir.Block)
    calls = [n for n in ir.walk(statement) if isinstance(n, ir.FunctionCall)]
    assert len(calls) == 1


def test_loops(tmp_path: Path) -> None:
    body = """
    for (bit<8> i = 0; i < 4; i = i + 1) { if (i == 2) { continue; } meta.x = meta.x + i; }
    for (bit<8> i in 1 .. 5) { meta.x = i; break; }
    for (h_t h in hdr.stack) { meta.x = meta.x ^ h.a; }
    """
    kinds = [type(s) for s in ingress(checked(tmp_path, program(body=body))).body.body]
    assert kinds == [ir.For, ir.ForRange, ir.ForEach]


def test_shadowed_names_stay_apart(tmp_path: Path) -> None:
    body = "bit<8> v = 1; { bit<16> v = 2; meta.y = v; } meta.x = v;"
    first, inner, last = ingress(checked(tmp_path, program(body=body))).body.body
    assert isinstance(first, ir.Declare) and isinstance(inner, ir.Block) and isinstance(last, ir.Assign)
    declared = inner.body[0]
    assert isinstance(declared, ir.Declare) and isinstance(last.value, ir.VarRef)
    assert last.value.variable is first.variable
    assert declared.variable.unique != first.variable.unique


def test_every_node_has_its_place(tmp_path: Path) -> None:
    result = checked(tmp_path, program(body="\nmeta.x =\n  meta.x\n  + 1;"))
    (assign,) = ingress(result).body.body
    lines = {type(n).__name__: n.loc.line for n in ir.walk(assign)}
    assert lines["Binary"] == lines["Assign"] + 1
    assert Path(assign.loc.file).name == "program.p4"


@pytest.mark.parametrize("lanes", [8, 256])
def test_the_switch_program_keeps_the_promises(lanes: int) -> None:
    result = check_file(ROOT / "p4src/luwu.p4", [ROOT / "p4src"], {"LANES": str(lanes)}).program
    assert violations(result) == []
