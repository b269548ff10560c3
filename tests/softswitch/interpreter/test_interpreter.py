"""The interpreter by itself, and beside the compiled switch on the main program."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.aggregation import frame as worker_frame
from bench.switch_inprocess import set_up
from catchment.checkout import ROOT
from catchment.softswitch.build import build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch, hashes
from catchment.softswitch.interpreter.__main__ import run

LUWU = ROOT / "p4src" / "luwu.p4"
DEFINES = {"LANES": "8", "SLOTS": "256"}

L2 = """\
#include <core.p4>
#include <v1model.p4>
header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_h ethernet; }
struct meta_t { bit<8> unused; }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { b.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action forward(bit<9> port) { sm.egress_spec = port; hdr.ethernet.type = hdr.ethernet.type + 1; }
    action drop() { mark_to_drop(sm); }
    table l2 { key = { hdr.ethernet.dst : exact; } actions = { forward; drop; } default_action = drop; size = 2; }
    apply { l2.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out b, in headers_t hdr) { apply { b.emit(hdr); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def _l2(folder: Path) -> Path:
    source = folder / "l2.p4"
    source.write_text(L2)
    return source


def test_trace_tells_every_step(tmp_path: Path) -> None:
    switch = InterpretedSwitch(check_file(_l2(tmp_path)).program)
    switch.insert("l2", {"hdr.ethernet.dst": 0x020000000001}, "forward", port=3)
    frame = bytes.fromhex("020000000001 020000000002 0800 0123")
    lines: list[str] = []
    assert switch.inject(1, frame, lines.append) == [(3, bytes.fromhex("020000000001 020000000002 0801 0123"))]
    steps = [line.partition("  [")[0].strip() for line in lines]
    wanted = [
        "state start",
        "extract hdr.ethernet = {dst=0x20000000001, src=0x20000000002, type=0x800}",
        "table I.l2(hdr.ethernet.dst=0x20000000001): hit",
        "action forward(port=3)",
        "sm.egress_spec = 3",
        "hdr.ethernet.type = 0x801",
        "--- egress by port 3",
    ]
    assert [line for line in steps if line in wanted] == wanted
    assert any("l2.p4:10:" in line for line in lines), "a step without its place in the source"


def test_command_prints_what_leaves(tmp_path: Path) -> None:
    source = _l2(tmp_path)
    packets = tmp_path / "packets"
    packets.write_text("# a miss, then a short one\n020000000001 020000000002 0800\n0102\n")
    assert run(source, [str(packets)]) == ["dropped: dropped by the program"] * 2
    assert "parser rejects: PacketTooShort" in run(source, ["0102"], trace=True)
    with pytest.raises(ValueError, match="hexadecimal"):
        run(source, ["xyz"])


@pytest.mark.sampled(4)
def test_table_writes_are_refused_like_the_compiled_switch_refuses_them(tmp_path: Path) -> None:
    source = _l2(tmp_path)
    both = (InterpretedSwitch(check_file(source).program), Switch(build(source), seed=1))
    key = {"hdr.ethernet.dst": 1}
    wrong: list[Callable[[Any], None]] = [
        lambda s: s.insert("l2", key, "forward", port=512),
        lambda s: s.insert("l2", key, "forward"),
        lambda s: s.insert("l2", {}, "drop"),
        lambda s: s.insert("l2", {"hdr.ethernet.dst": (1, 2)}, "drop"),
        lambda s: s.insert("l2", {"hdr.ethernet.src": 1}, "drop"),
        lambda s: s.insert("l2", {"hdr.ethernet.dst": 1 << 48}, "drop"),
        lambda s: s.insert("l2", key, "drop", priority=1),
        lambda s: s.remove("l2", {"hdr.ethernet.dst": 9}),
        lambda s: s.insert("l3", key, "drop"),
        lambda s: s.insert("l2", key, "flood"),
    ]
    for switch in both:
        switch.insert("l2", {"hdr.ethernet.dst": 3}, "drop")
        switch.insert("l2", {"hdr.ethernet.dst": 4}, "drop")
        switch.remove("l2", {"hdr.ethernet.dst": 4})
    for number, call in enumerate(wrong):
        codes = []
        for switch in both:
            with pytest.raises(SwitchError) as caught:
                call(switch)
            codes.append(caught.value.code)
        assert codes[0] == codes[1], (number, codes)
    for switch in both:
        switch.insert("l2", {"hdr.ethernet.dst": 4}, "drop")
        with pytest.raises(SwitchError, match="full"):
            switch.insert("l2", {"hdr.ethernet.dst": 5}, "drop")


@pytest.mark.sampled(4)
def test_main_program_equals_the_compiled_switch(rng: random.Random) -> None:
    both = (Switch(build(LUWU, defines=DEFINES), seed=1), InterpretedSwitch(check_file(LUWU, (), DEFINES).program))
    for switch in both:
        set_up(switch, 4)
    good = [worker_frame(8, worker, seq) for seq in range(64) for worker in range(4)]
    for number in range(400):
        frame = bytearray(good[number % len(good)])
        if rng.random() < 0.3:
            frame[rng.randrange(len(frame))] ^= 1 << rng.randrange(8)
        frame = frame[: rng.randrange(len(frame))] if rng.random() < 0.1 else frame
        port = 1 + number % 4
        compiled, interpreted = (switch.inject(port, bytes(frame)) for switch in both)
        assert compiled == interpreted, (number, port, bytes(frame).hex())


PASSED_ON = """\
#include <core.p4>
#include <v1model.p4>
header y_h { bit<8> n; bit<8> m; }
struct headers_t { y_h a; y_h b; }
struct meta_t { bit<8> unused; }
struct noted_t { bit<8> n; y_h b; tuple<bit<8>, bool> rest; }
parser P(packet_in p, out headers_t h, inout meta_t meta, inout standard_metadata_t sm) {
    state start { p.extract(h.a); transition select(h.a.n) { 0: accept; default: more; } }
    state more { p.extract(h.b); transition accept; }
}
control V(inout headers_t h, inout meta_t meta) { apply {} }
control Count(register<bit<8>> r, inout bit<8> x) { apply { bit<8> t; r.read(t, 1); r.write(1, t + x); x = t; } }
control Twice(register<bit<8>> r, inout y_h h) { Count() count; apply { count.apply(r, h.n); count.apply(r, h.m); } }
control I(inout headers_t h, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<8>>(2) first; register<bit<8>>(2) second; Count() one; Twice() two;
    apply {
        sm.egress_spec = 1;
        log_msg("{} {} {}", { h.a.n, h.b });
        one.apply(first, h.a.n);
        two.apply(second, h.b);
        two.apply(first, h.b);
        if (h.a.m == 2) { digest<noted_t>(1, { h.a.n, h.b, { h.b.m, true } }); }
        if (h.a.m == 3) { digest(1, { h.a.n, h.b.m }); }
        if (h.a.m == 4) { digest<y_h>(1, h.b); }
    }
}
control E(inout headers_t h, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.mark.sampled(4)
def test_registers_passed_on_and_digests_of_anything_are_as_in_the_compiled_switch(tmp_path: Path) -> None:
    source = tmp_path / "passed_on.p4"
    source.write_text(PASSED_ON)
    both = (Switch(build(source), seed=1), InterpretedSwitch(check_file(source).program))
    heard: list[list[Any]] = []
    for switch in both:
        told: list[Any] = []
        switch.on_digest(lambda name, values, told=told: told.append((name, values)))
        switch.on_log(told.append)
        told += [switch.inject(1, bytes([number, number + 1, 7, 9])) for number in (1, 2, 3, 0)]
        heard.append(told)
    assert heard[0] == heard[1]
    digests = [one for one in heard[0] if isinstance(one, tuple)]
    assert [(name, len(values)) for name, values in digests] == [("noted_t", 5), ("digest_0", 2), ("y_h", 2)]
    assert digests[0][1] == [0, 1, 1, 1, 1]
    assert "1 7 9" in heard[0] and "0 7 9" not in heard[0]


def test_hashes_have_the_catalogue_s_check_values() -> None:
    text = b"123456789"
    assert (hashes.crc32(text), hashes.crc16(text)) == (0xCBF43926, 0xBB3D)
    # RFC 1071, section 3.
    assert hashes.csum16(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF ^ 0xDDF2
