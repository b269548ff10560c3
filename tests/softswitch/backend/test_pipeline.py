"""Tests of what comes between the blocks: multicast, clone, resubmit, recirculate, drop, digest, truncate, errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from backend_programs import switch

from catchment.softswitch.compiler.diagnostics import CompileError

BASE = {
    "declarations": "header h_t { bit<8> a; bit<8> b; bit<16> c; } struct note_t { bit<8> a; bit<48> wide; }",
    "headers": "h_t h;",
    "meta": "@field_list(1, 2) bit<8> kept; @field_list(2) bit<8> also; bit<8> lost;",
    "parser": "state start { packet.extract(hdr.h); transition accept; }",
    "deparser": "packet.emit(hdr.h);",
}


def test_multicast_copies_are_independent(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "multicast",
        ingress="sm.mcast_grp = (bit<16>)hdr.h.a; hdr.h.b = 5;",
        egress="""
        hdr.h.b = hdr.h.b + (bit<8>)sm.egress_port;
        hdr.h.c = sm.egress_rid;
        if (sm.egress_port == 3) { hdr.h.setInvalid(); }
        if (sm.egress_port == 4) { mark_to_drop(sm); }
        if (sm.instance_type != 5) { hdr.h.c = 0xFFFF; }
        """,
        **BASE,
    )
    target.multicast(7, [(1, 10), (2, 20), (3, 30), (4, 40), (2, 21)])
    out = target.inject(1, bytes([7, 0, 0, 0]) + b"tail")
    assert out == [
        (1, bytes([7, 6, 0, 10]) + b"tail"),
        (2, bytes([7, 7, 0, 20]) + b"tail"),
        (3, b"tail"),
        (2, bytes([7, 7, 0, 21]) + b"tail"),
    ]
    assert target.inject(1, bytes([8, 0, 0, 0])) == []  # no such group: no copies
    target.remove_multicast(7)
    assert target.inject(1, bytes([7, 0, 0, 0])) == []


def test_clones_carry_the_packet_as_it_came_and_the_kept_fields(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "clone",
        ingress="""
        sm.egress_spec = 1;
        meta.kept = 0x11; meta.lost = 0x22; meta.also = 0x33;
        if (hdr.h.a == 1) clone_preserving_field_list(CloneType.I2E, 5, 1);
        if (hdr.h.a == 2) clone(CloneType.I2E, 5);
        if (hdr.h.a == 4) clone_preserving_field_list(CloneType.I2E, 99, 2);
        hdr.h.b = 0xEE;
        """,
        egress="""
        if (sm.instance_type == 1) { hdr.h.c = meta.kept ++ (meta.lost | meta.also); }
        if (sm.instance_type == 2) { hdr.h.c = 0xE2E0 + (bit<16>)meta.also; }
        if (sm.instance_type == 0 && hdr.h.a == 3) { clone_preserving_field_list(CloneType.E2E, 6, 2); hdr.h.b = 0xDD; }
        """,
        **BASE,
    )
    target.clone_session(5, [2, 3], length=3)
    target.clone_session(6, [4])
    plain = bytes([0xEE, 0, 0])
    assert sorted(target.inject(9, bytes([1, 7, 0, 0, 8]))) == [
        (1, bytes([1, *plain, 8])),
        (2, bytes([1, 7, 0x11])),
        (3, bytes([1, 7, 0x11])),
    ]
    assert sorted(target.inject(9, bytes([2, 7, 9, 9]))) == [
        (1, bytes([2, 0xEE, 9, 9])),
        (2, bytes([2, 7, 0])),
        (3, bytes([2, 7, 0])),
    ]
    assert sorted(target.inject(9, bytes([3, 7, 0, 0]))) == [
        (1, bytes([3, 0xDD, 0, 0])),
        (4, bytes([3, 0xDD, 0xE3, 0x13])),
    ]
    assert target.inject(9, bytes([4, 7, 0, 0])) == [(1, bytes([4, 0xEE, 0, 0]))]


def test_the_length_of_a_clone_counts_a_header_for_the_controller_and_packet_length_does_not(tmp_path: Path) -> None:
    """What is asked of a session is cut from all that leaves; in egress a clone is as long as its original came in."""
    declarations = BASE["declarations"] + ' @controller_header("packet_in") header note_h { bit<16> length; }'
    target = switch(
        tmp_path,
        "clone_length",
        ingress="sm.egress_spec = 1; if (hdr.h.a == 1) clone(CloneType.I2E, 5); hdr.extra.setValid();",
        egress="""
        if (sm.instance_type != 0) { hdr.note.setValid(); hdr.note.length = (bit<16>)sm.packet_length; }
        if (sm.instance_type == 0) {
            hdr.h.c = (bit<16>)sm.packet_length;
            if (hdr.h.a == 2) { hdr.note.setValid(); clone(CloneType.E2E, 5); hdr.note.setInvalid(); }
        }
        """,
        **BASE
        | {"declarations": declarations, "headers": "note_h note; h_t extra; h_t h;"}
        | {"deparser": "packet.emit(hdr.note); packet.emit(hdr.extra); packet.emit(hdr.h);"},
    )
    target.clone_session(5, [4], length=5)
    added = bytes(4)
    assert sorted(target.inject(9, bytes([1, 7, 8, 8]) + b"tail")) == [
        (1, added + bytes([1, 7, 0, 8]) + b"tail"),
        (4, bytes([0, 8, 1, 7, 8])),
    ]
    assert sorted(target.inject(9, bytes([2, 7, 8, 8]) + b"tail")) == [
        (1, added + bytes([2, 7, 0, 8]) + b"tail"),
        (4, bytes([0, 8, 0, 0, 0])),
    ]


def test_resubmit_and_recirculate(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "again",
        ingress="""
        sm.egress_spec = 1;
        meta.lost = meta.lost + 1;
        if (hdr.h.a == 1 && sm.instance_type == 0) {
            meta.kept = 0x42; hdr.h.b = 0x99;
            resubmit_preserving_field_list(1);
        } else if (sm.instance_type == 6) {
            hdr.h.c = meta.kept ++ meta.lost;
        }
        if (sm.instance_type == 4) { hdr.h.b = hdr.h.b + 1; }
        """,
        egress="""
        if (hdr.h.a == 2 && hdr.h.b < 3) { recirculate_preserving_field_list(0); }
        if (hdr.h.a == 3) { recirculate_preserving_field_list(0); }
        if (hdr.h.a == 5) { truncate(6); }
        """,
        **BASE,
    )
    assert target.inject(2, bytes([1, 7, 0, 0, 5])) == [(1, bytes([1, 7, 0x42, 1, 5]))]
    assert target.inject(2, bytes([2, 0, 0, 0])) == [(1, bytes([2, 3, 0, 0]))]
    assert target.inject(2, bytes([3, 0, 0, 0])) == []  # for ever: ended and counted
    assert target.statistics(2)["drops"]["resubmitted or recirculated too often"] == 1
    assert target.inject(2, bytes([5, 0, 0, 0]) + bytes(range(9))) == [(1, bytes([5, 0, 0, 0, 0, 1]))]


@pytest.mark.sampled(4)
def test_digests_logs_and_statistics(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "messages",
        ingress="""
        sm.egress_spec = 511;
        if (hdr.h.isValid()) {
            digest<note_t>(1, { hdr.h.a, (bit<48>)hdr.h.c << 20 });
            log_msg("a={} c={}", {hdr.h.a, hdr.h.c});
            assert(hdr.h.a == 200);
        } else if (sm.parser_error == error.PacketTooShort) {
            sm.egress_spec = 6;
        }
        """,
        **BASE,
    )
    digests: list[tuple[str, list[int]]] = []
    logs: list[str] = []
    target.on_digest(lambda name, values: digests.append((name, values)))
    target.on_log(logs.append)
    assert target.inject(3, bytes([200, 0, 1, 2])) == []
    assert target.inject(3, bytes([100, 0, 0, 0])) == []
    assert digests == [("note_t", [200, 0x102 << 20]), ("note_t", [100, 0])]
    assert logs[:2] == ["a=200 c=258", "a=100 c=0"]
    assert "assert failed" in logs[2]
    assert target.inject(3, b"abc") == [(6, b"abc")]
    statistics = target.statistics(3)
    assert (statistics["rx_packets"], statistics["rx_bytes"]) == (3, 11)
    assert statistics["drops"]["dropped by the program"] == 2
    assert target.statistics(6)["tx_packets"] == 1


@pytest.mark.parametrize("levels", [21, 60])
def test_more_metadata_than_a_packet_can_have_is_refused(tmp_path: Path, levels: int) -> None:
    """The refusal comes at once, however often a type is in another."""
    doubling = "struct s0 { bit<8> x; }" + "".join(
        f"struct s{level} {{ s{level - 1} l; s{level - 1} r; }}" for level in range(1, levels)
    )
    program = {**BASE, "declarations": f"{BASE['declarations']} {doubling}", "meta": f"s{levels - 1} big; bit<8> more;"}
    with pytest.raises(CompileError, match=rf" of {2 ** (levels - 1) + 1} bytes, of which 1048576 are the most"):
        switch(tmp_path, "doubling", ingress="sm.egress_spec = 1;", **program)
