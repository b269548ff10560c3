"""Parsers: stacks, lookahead, varbit, unions, sub-parsers, select, value sets, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_programs import switch

from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.interpreter import InterpretedSwitch


def test_stack_of_labels_with_loop(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "stack",
        declarations="header label_t { bit<7> v; bit<1> bos; }",
        headers="label_t[3] labels;",
        parser="""
        state start { packet.extract(hdr.labels.next); transition select(hdr.labels.last.bos) { 0: start; 1: accept; } }
        """,
        ingress="""
        sm.egress_spec = 1;
        if (sm.parser_error == error.StackOutOfBounds) { sm.egress_spec = 3; }
        if (sm.parser_error == error.PacketTooShort) { sm.egress_spec = 4; }
        if (hdr.labels[0].v == 1) { hdr.labels.pop_front(1); }
        if (hdr.labels[0].v == 2) { hdr.labels.push_front(1); hdr.labels[0].setValid(); hdr.labels[0].v = 9; }
        bit<2> last = (bit<2>)hdr.labels[0].bos;
        hdr.labels[last].bos = hdr.labels[last].bos;
        """,
        deparser="packet.emit(hdr.labels);",
    )

    def labels(*values: int) -> bytes:
        return bytes(v << 1 for v in values[:-1]) + bytes([values[-1] << 1 | 1])

    assert target.inject(0, labels(5, 6) + b"x") == [(1, labels(5, 6) + b"x")]
    assert target.inject(0, labels(1, 6, 7)) == [(1, labels(6, 7))]
    assert target.inject(0, labels(2, 6)) == [(1, bytes([18]) + labels(2, 6))]
    assert target.inject(0, labels(2, 6, 7)) == [(1, bytes([18, 4, 12]))]  # the last one falls off
    assert target.inject(0, labels(3, 4, 5, 6)) == [(3, labels(3, 4, 5, 6))]
    assert target.inject(0, bytes([6])) == [(4, bytes([6]))]


def test_varbit_union_lookahead_verify_and_sub_parser(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "forms",
        declarations="""
        header base_t { bit<8> kind; bit<8> n; }
        header opts_t { bit<4> x; bit<4> y; varbit<64> data; bit<16> after; }
        header one_t { bit<8> v; }
        header two_t { bit<16> v; }
        header_union u_t { one_t one; two_t two; }
        error { Odd }
        parser Sub(packet_in packet, out two_t two) { state start { packet.extract(two); transition accept; } }
        """,
        headers="base_t base; opts_t opts; u_t u; two_t two;",
        parser="""
        Sub() sub;
        state start {
            packet.extract(hdr.base);
            transition select(hdr.base.kind, hdr.base.n) {
                (1, _): options;
                (2, 0 .. 9): one;
                (2, 0x80 &&& 0x80): two;
                (3, _): look;
                (4, _): sub_state;
                (5, _): skip;
            }
        }
        state options { packet.extract(hdr.opts, (bit<32>)hdr.base.n); transition accept; }
        state one { packet.extract(hdr.u.one); transition accept; }
        state two { packet.extract(hdr.u.one); packet.extract(hdr.u.two); transition accept; }
        state look {
            bit<8> next = packet.lookahead<bit<8>>();
            verify(next != 0xAA, error.Odd);
            transition select(next) { 1: one; default: accept; }
        }
        state sub_state { sub.apply(packet, hdr.two); transition accept; }
        state skip { packet.advance(16); packet.extract(hdr.two); transition accept; }
        """,
        ingress="""
        sm.egress_spec = 1;
        if (sm.parser_error == error.Odd) { sm.egress_spec = 2; }
        if (sm.parser_error == error.PacketTooShort) { sm.egress_spec = 4; }
        if (sm.parser_error == error.HeaderTooShort) { sm.egress_spec = 5; }
        if (sm.parser_error == error.ParserInvalidArgument) { sm.egress_spec = 6; }
        if (hdr.u.one.isValid()) { hdr.u.one.v = hdr.u.one.v + 1; }
        if (hdr.u.isValid()) { hdr.base.n = 0x77; }
        if (hdr.opts.isValid()) { hdr.opts.after = hdr.opts.after + 1; }
        if (hdr.two.isValid()) { hdr.two.v = hdr.two.v + 1; }
        """,
        deparser="packet.emit(hdr);",
    )

    def run(*values: int) -> tuple[int, list[int]]:
        ((port, out),) = target.inject(0, bytes(values))
        return port, list(out)

    assert run(1, 16, 0x5A, 1, 2, 0, 9, 0xEE) == (1, [1, 16, 0x5A, 1, 2, 0, 10, 0xEE])
    assert run(1, 0, 0x5A, 0, 9) == (1, [1, 0, 0x5A, 0, 10])
    assert run(1, 72, *range(20))[0] == 5
    assert run(1, 12, *range(20))[0] == 6
    assert run(1, 64, 1, 2)[0] == 4
    assert run(2, 5, 8, 0xEE) == (1, [2, 0x77, 9, 0xEE])
    assert run(2, 0x85, 8, 1, 2, 3) == (1, [2, 0x77, 1, 2, 3])  # the union's second header takes the place of the first
    assert run(2, 0x10, 8) == (1, [2, 0x10, 8])  # no case fits: no error
    assert run(3, 0, 1, 5) == (1, [3, 0x77, 2, 5])
    assert run(3, 0, 0xAA) == (2, [3, 0, 0xAA])
    assert run(3, 0) == (4, [3, 0])
    assert run(4, 0, 0, 7, 1) == (1, [4, 0, 0, 8, 1])
    assert run(4, 0, 0) == (4, [4, 0, 0])
    assert run(5, 0, 9, 9, 1, 2) == (1, [5, 0, 1, 3])
    assert run(6, 0)[0] == 1


def test_value_set(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "value_sets",
        declarations="header h_t { bit<8> a; bit<16> b; }",
        headers="h_t h; h_t again;",
        parser="""
        value_set<bit<16>>(4) known;
        state start { packet.extract(hdr.h); transition select(hdr.h.b) { known: more; default: accept; } }
        state more { packet.extract(hdr.again); transition accept; }
        """,
        ingress="sm.egress_spec = hdr.again.isValid() ? 9w2 : 1;",
        deparser="packet.emit(hdr);",
    )
    data = bytes([1, 0, 5, 1, 2, 3])
    assert target.inject(0, data) == [(1, data)]
    target.write_value_set("known", [(5,), (6,)])
    assert target.inject(0, data) == [(2, data)]
    target.write_value_set("known", [(6,)])
    assert target.inject(0, data) == [(1, data)]


@pytest.mark.sampled(4)
def test_value_set_of_tuples(tmp_path: Path) -> None:
    """Both fields have to fit, in the compiled switch as in the interpreter."""
    parts = {
        "declarations": "header h_t { bit<8> a; bit<16> b; } enum bit<8> kind_t { A = 1, B = 2 }",
        "headers": "h_t h;",
        "parser": """
        value_set<tuple<bit<8>, bit<16>>>(4) pairs;
        value_set<kind_t>(4) kinds;
        state start {
            packet.extract(hdr.h);
            transition select(hdr.h.a, hdr.h.b) { pairs: pair; default: other; }
        }
        state pair { hdr.h.b = 0xAAAA; transition accept; }
        state other { transition select((kind_t)hdr.h.a) { kinds: kind; default: accept; } }
        state kind { hdr.h.b = 0xBBBB; transition accept; }
        """,
        "ingress": "sm.egress_spec = 1;",
        "deparser": "packet.emit(hdr);",
    }
    compiled = switch(tmp_path, "tuple_sets", **parts)
    model = InterpretedSwitch(check_file(tmp_path / "tuple_sets.p4").program)
    for target in (compiled, model):
        target.write_value_set("pairs", [(1, 0x0203), (4, 0x0506)])
        target.write_value_set("kinds", [(2,)])
        answers = {
            data: target.inject(0, bytes.fromhex(data))[0][1].hex()
            for data in ("010203", "040506", "010506", "010204", "020203")
        }
        assert answers == {
            "010203": "01aaaa",
            "040506": "04aaaa",
            "010506": "010506",
            "010204": "010204",
            "020203": "02bbbb",
        }
