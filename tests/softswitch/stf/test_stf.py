"""The STF runner: every statement does what it says, and a test that should fail does."""

from __future__ import annotations

import pytest

from catchment.softswitch.build import BuiltProgram, build
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.stf import Report, StfError, parse, run

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    counter(4, CounterType.packets_and_bytes) seen;
    register<bit<16>>(4) kept;
    action to(bit<9> port, bit<8> mark) { sm.egress_spec = port; hdr.h.b = mark; }
    action group(bit<16> id) { sm.mcast_grp = id; }
    action drop() { mark_to_drop(sm); }
    table t { key = { hdr.h.a : ternary; hdr.h.c : lpm; } actions = { to; group; drop; } default_action = drop(); }
    apply {
        seen.count(1);
        if (t.apply().miss) { kept.read(hdr.h.c, 2); }
        if (hdr.h.a == 0xFE) { clone(CloneType.I2E, 5); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply { if (sm.instance_type == 5) { hdr.h.b = (bit<8>)sm.egress_rid; } }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), MyIngress(), MyEgress(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuiltProgram:
    source = tmp_path_factory.mktemp("p4") / "stf.p4"
    source.write_text(PROGRAM)
    return build(source, strict=True)


def outcome(built: BuiltProgram, text: str) -> Report:
    return run(Switch(built, seed=1), built.p4info, text)


GOOD = """
# priorities: the larger one wins
add t 10 hdr.h.a:0x1* hdr.h.c:0xAB00/8 to(port:3, mark:0x77)
add MyIngress.t 20 h.a:0x15 h.c:0xABCD/16 drop()
packet 0 1000 ABCD 99
expect 3 10 77 AB*D 9* $
packet 0 1500 ABCD
no_packet
packet 0 1500 AB00
expect 3 1577
setdefault t to(port:4, mark:1)
register_write kept 2 0x1234
packet 0 99000000
expect 4 9901 1234$
check_counter seen(1) packets == 4
check_counter seen(1) bytes >= 16
mc_mgrp_create 7
mc_node_create 40 1 2
mc_node_create 41 2
mc_node_associate 7 0
mc_node_associate 7 1
setdefault t group(id:7)
packet 0 88000000
expect 1 88 28
expect 2 88 28
expect 2 88 29
mirroring_add 5 6
setdefault t drop()
packet 0 FE000000
expect 6
remove all
"""


def test_every_statement(built: BuiltProgram) -> None:
    report = outcome(built, GOOD)
    assert report.failures == []
    assert report.packets == 6


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("setdefault t to(port:4, mark:1)\npacket 0 99000000\nexpect 4 98", "expected 98, got 99010000"),
        ("setdefault t to(port:4, mark:1)\npacket 0 99000000\nexpect 4 99010000 00", "expected 9901000000"),
        ("setdefault t to(port:4, mark:1)\npacket 0 9900000055\nexpect 4 99010000$", "got 9901000055"),
        ("setdefault t to(port:4, mark:1)\npacket 0 99000000", "unexpected frame"),
        ("setdefault t to(port:4, mark:1)\npacket 0 99000000\nno_packet", "unexpected frame"),
        ("packet 0 99000000\nexpect 4 99", "got nothing"),
        ("packet 0 99000000\nexpect 4", "got nothing"),
        ("packet 0 99000000\ncheck_counter seen(1) packets == 2", "packets is 1"),
    ],
)
def test_what_does_not_hold_is_reported(built: BuiltProgram, text: str, reason: str) -> None:
    report = outcome(built, text)
    assert not report.ok
    assert reason in report.failures[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\nfly 0 00", "<stf>:2: unknown statement fly"),
        ("packet 0 0", "<stf>:1"),
        ("expect 0 0G", "digits"),
        ("add t hdr.h.a:1 to(port)", "NAME:VALUE"),
        ("add t nothing:1 drop()", "no key nothing"),
        ("add nowhere hdr.h.a:1 drop()", "nowhere is unknown"),
        ("add t hdr.h.a:0x1 fly()", "fly is unknown"),
        ("mirroring_add 1", "takes 2 words"),
    ],
)
def test_bad_statements_name_their_line(built: BuiltProgram, text: str, reason: str) -> None:
    with pytest.raises(StfError, match="<stf>:") as error:
        outcome(built, text)
    assert reason in str(error.value)


def test_comments_and_blank_lines_are_nothing() -> None:
    assert parse("# packet 0 00\n\n   \n  wait # and no more\n")[0].line == 4
