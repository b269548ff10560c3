"""Statements and expressions of the language, each checked against what P4_16 says."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_programs import switch

BASE = {
    "declarations": "header h_t { bit<8> a; bit<8> b; bit<16> c; bit<32> d; }",
    "headers": "h_t h; h_t other;",
    "parser": "state start { packet.extract(hdr.h); transition accept; }",
    "deparser": "packet.emit(hdr);",
}


def frame(a: int, b: int, c: int = 0, d: int = 0) -> bytes:
    return bytes([a, b]) + c.to_bytes(2, "big") + d.to_bytes(4, "big")


def test_calls_copy_in_and_out_also_when_arguments_overlap(tmp_path: Path) -> None:
    declarations = """
    void swap(inout bit<8> x, inout bit<8> y) { bit<8> z = x; x = y; y = z; }
    bit<8> twice(in bit<8> x) { return x + x; }
    bit<8> early(in bit<8> x) { if (x > 5) { return 1; } return 2; }
    control Sub(inout bit<8> x, inout bit<8> y, in bit<8> z, out bit<16> w) {
        apply { x = x + 1; y = x + z; if (z == 9) { return; } w = 0xABCD; }
    }
    """
    target = switch(
        tmp_path,
        "calls",
        **BASE | {"declarations": BASE["declarations"] + declarations},
        ingress_locals="""
        Sub() sub;
        action direct(inout bit<8> x, in bit<8> y) { hdr.h.a = 100; x = x + y; }
        """,
        ingress="""
        sm.egress_spec = 1;
        if (hdr.h.c == 0) { swap(hdr.h.a, hdr.h.b); }
        if (hdr.h.c == 1) { swap(hdr.h.a, hdr.h.a); }
        if (hdr.h.c == 2) { sub.apply(hdr.h.a, hdr.h.b, hdr.h.a, hdr.h.c); }
        if (hdr.h.c == 3) { direct(hdr.h.a, 3); }
        if (hdr.h.c == 4) { hdr.h.a = twice(twice(hdr.h.a)) + early(hdr.h.b); }
        if (hdr.h.c == 5) { swap(hdr.h.d[7:0], hdr.h.d[31:24]); }
        """,
    )

    def run(*values: int) -> tuple[int, int, int, int]:
        ((_, out),) = target.inject(0, frame(*values))
        return out[0], out[1], int.from_bytes(out[2:4], "big"), int.from_bytes(out[4:8], "big")

    assert run(1, 2, 0) == (2, 1, 0, 0)
    assert run(7, 2, 1) == (7, 2, 1, 0)
    assert run(7, 2, 2) == (8, 15, 0xABCD, 0)  # z is the old a
    assert run(9, 2, 2) == (10, 19, 0, 0)  # an out parameter that is not written is zero
    assert run(7, 2, 3) == (10, 2, 3, 0)  # copied in before, back after
    assert run(3, 9, 4) == (13, 9, 4, 0)
    assert run(0, 0, 5, 0x12345678) == (0, 0, 5, 0x78345612)


@pytest.mark.sampled(4)
def test_arguments_are_read_before_anything_is_written(tmp_path: Path) -> None:
    declarations = """
    bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
    void put(out bit<8> y, in bit<8> x) { y = x + 1; }
    void add(inout bit<8> y, in bit<8> x) { y = y + x; }
    bit<8> minus(in bit<8> x, in bit<8> y) { return x - y; }
    control Put(out bit<8> y, in bit<8> x) { apply { y = x + 2; } }
    """
    target = switch(
        tmp_path,
        "arguments",
        **BASE | {"declarations": BASE["declarations"] + declarations},
        ingress_locals="Put() sub;",
        ingress="""
        sm.egress_spec = 1;
        if (hdr.h.b == 0) { put(hdr.h.a, hdr.h.a); }
        if (hdr.h.b == 1) { sub.apply(hdr.h.a, hdr.h.a); }
        if (hdr.h.b == 2) { hdr.h.a = minus(hdr.h.a, bump(hdr.h.a)); }
        if (hdr.h.b == 3) { add(hdr.h.a, bump(hdr.h.a)); }
        """,
    )
    results = [target.inject(0, frame(10, b))[0][1][0] for b in range(4)]
    assert results == [11, 12, 255, 21]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("leaves", ["exit", "return"])
def test_what_goes_out_is_copied_back_from_left_to_right(tmp_path: Path, leaves: str) -> None:
    """One variable for two parameters has the value of the last. (After `exit`, p4c copies from right to left.)"""
    declarations = f"""
    control Inner(inout bit<8> x, out bit<8> y) {{ apply {{ x = 1; y = 2; if (x == 1) {{ {leaves}; }} y = 3; }} }}
    """
    target = switch(
        tmp_path,
        f"copies_{leaves}",
        **BASE | {"declarations": BASE["declarations"] + declarations},
        ingress_locals="Inner() inner;",
        ingress="sm.egress_spec = 2; inner.apply(hdr.h.a, hdr.h.a);",
    )
    assert target.inject(0, frame(0, 0))[0][1][0] == 2


@pytest.mark.sampled(4)
def test_exit_leaves_every_call_and_copies_back(tmp_path: Path) -> None:
    declarations = """
    control Inner(inout bit<8> x) { apply { x = 1; if (x == 1) { exit; } x = 2; } }
    control Outer(inout bit<8> x) { Inner() inner; apply { inner.apply(x); x = 3; } }
    """
    target = switch(
        tmp_path,
        "exits",
        **BASE | {"declarations": BASE["declarations"] + declarations},
        ingress_locals="""
        Outer() outer;
        action leave() { hdr.h.c = 0x1111; exit; }
        table t { actions = { leave; } default_action = leave(); }
        """,
        ingress="""
        sm.egress_spec = 2;
        if (hdr.h.b == 0) { outer.apply(hdr.h.a); }
        if (hdr.h.b == 1) { if (t.apply().miss) { hdr.h.c = 0x2222; } }
        if (hdr.h.b == 2) { leave(); }
        hdr.h.a = 99;
        """,
        egress="hdr.h.d = 7;",
    )
    outputs = [target.inject(0, frame(0, b))[0][1] for b in range(4)]
    assert [(o[0], int.from_bytes(o[2:4], "big"), o[7]) for o in outputs] == [
        (1, 0, 7),
        (0, 0x1111, 7),
        (0, 0x1111, 7),
        (99, 0, 7),
    ]


@pytest.mark.sampled(4)
def test_loops_and_switch_on_values(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "loops",
        **BASE,
        ingress="""
        sm.egress_spec = 2;
        for (bit<8> i = 0; i < hdr.h.a; i = i + 1) {
            if (i == 3) { continue; }
            if (i == 7) { break; }
            hdr.h.d = hdr.h.d + (bit<32>)i;
        }
        for (bit<8> i in 8w250 .. 8w255) { hdr.h.c = hdr.h.c + (bit<16>)i; }
        switch (hdr.h.b) {
            1: { hdr.h.b = 10; }
            2:
            3: { hdr.h.b = 20; }
            default: { hdr.h.b = 30; }
        }
        """,
    )
    for a in range(12):
        ((_, out),) = target.inject(0, frame(a, a))
        assert int.from_bytes(out[4:8], "big") == sum(i for i in range(min(a, 7)) if i != 3)
        assert int.from_bytes(out[2:4], "big") == sum(range(250, 256))
        assert out[1] == {1: 10, 2: 20, 3: 20}.get(a, 30)


@pytest.mark.sampled(4)
def test_lazy_operators_and_effects_run_left_to_right(tmp_path: Path) -> None:
    declarations = "bit<8> bump(inout bit<8> x) { x = x + 1; return x; }"
    target = switch(
        tmp_path,
        "effects",
        **BASE | {"declarations": BASE["declarations"] + declarations},
        ingress="""
        sm.egress_spec = 2;
        hdr.h.d[31:24] = hdr.h.a + bump(hdr.h.a) + hdr.h.a;
        if (hdr.h.b == 0 && bump(hdr.h.a) > 0) { hdr.h.c[7:0] = 1; }
        if (hdr.h.b == 0 || bump(hdr.h.a) > 0) { hdr.h.c[15:8] = 1; }
        hdr.h.d[7:0] = hdr.h.b == 0 ? bump(hdr.h.b) : 8w77;
        """,
    )
    assert target.inject(0, frame(10, 0))[0][1] == frame(12, 1, 0x0101, (10 + 11 + 11) << 24 | 1)
    assert target.inject(0, frame(10, 5))[0][1] == frame(12, 5, 0x0100, (10 + 11 + 11) << 24 | 77)


@pytest.mark.sampled(4)
def test_validity_assignment_and_comparison_of_headers(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "validity",
        **BASE,
        ingress="""
        sm.egress_spec = 2;
        if (hdr.h.a == 0) { hdr.other = hdr.h; hdr.other.b = 9; }
        if (hdr.h.a == 1) { hdr.other.setValid(); hdr.other.c = 3; hdr.h.setInvalid(); hdr.h.setValid(); }
        if (hdr.h.a == 2) { hdr.h = hdr.other; }
        if (hdr.h.a == 3) { hdr.other = { 1, 2, 3, 4 }; if (hdr.other == hdr.h) { hdr.h.b = 1; } }
        if (hdr.h.a == 4) { h_t copy = hdr.h; if (copy == hdr.h) { hdr.h.b = 1; } }
        if (hdr.h.a == 5) { hdr.h.c = (bit<16>)hdr.other.a + 1; }
        """,
    )
    inject = [target.inject(0, frame(a, 7))[0][1] for a in range(6)]
    assert inject[0] == frame(0, 7) + frame(0, 9)
    assert inject[1] == frame(0, 0) + frame(0, 0, 3)
    assert inject[2] == b""
    assert inject[3] == frame(3, 7) + frame(1, 2, 3, 4)
    assert inject[4] == frame(4, 1)
    assert inject[5] == frame(5, 7, 1)


@pytest.mark.sampled(4)
def test_registers_counters_outside_their_size(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "state",
        **BASE,
        ingress_locals="register<bit<100>>(4) wide; register<bit<32>>(4) r; counter(4, CounterType.packets) c;",
        ingress="""
        sm.egress_spec = 2;
        bit<32> value;
        r.read(value, (bit<32>)hdr.h.a);
        r.write((bit<32>)hdr.h.a, value + hdr.h.d);
        hdr.h.d = value;
        c.count((bit<32>)hdr.h.a);
        wide.write((bit<32>)hdr.h.b, (bit<100>)hdr.h.c << 80);
        """,
    )
    assert target.inject(0, frame(3, 3, 5, 1000))[0][1] == frame(3, 3, 5, 0)
    assert target.inject(0, frame(3, 4, 5, 1))[0][1] == frame(3, 4, 5, 1000)
    assert target.inject(0, frame(4, 255, 5, 1))[0][1] == frame(4, 255, 5, 0)
    assert target.read_registers("r") == [0, 0, 0, 1001]
    assert target.read_registers("wide") == [0, 0, 0, 5 << 80]
    assert [target.read_counter("c", i)[0] for i in range(4)] == [0, 0, 0, 2]
    target.write_register("wide", 1, (1 << 100) - 1)
    assert target.read_register("wide", 1) == (1 << 100) - 1
