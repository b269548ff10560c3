"""A frame's loops take a bounded number of rounds: counted alike in compiled code and in the interpreter."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from catchment.softswitch.build import build
from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.loop_rounds import Loop, counted_in
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

SOURCE = Path(__file__).with_name("loops.p4")
CAUSE = "too many loop steps"


def frame(what: int, rounds: int, more: int = 0) -> bytes:
    return bytes([what, rounds]) + more.to_bytes(2, "big") + bytes(4)


def compiled(max_steps: int | None = None) -> Switch:
    return Switch(build(SOURCE, strict=True), seed=1, max_steps=max_steps)


def replicate(switch: Switch | InterpretedSwitch) -> None:
    switch.multicast(1, [(2, 1), (3, 2), (4, 3)])
    switch.clone_session(1, [5, 6])
    switch.clone_session(2, [7])


@pytest.mark.sampled(4)
def test_a_loop_without_end_drops_the_frame_and_no_other() -> None:
    switch = compiled()
    lines: list[str] = []
    switch.on_log(lines.append)
    assert switch.inject(3, frame(1, 255)) == []
    assert switch.statistics(3)["drops"][CAUSE] == 1
    assert switch.read_registers("rounds_taken") == [65536], "what the frame left behind stays"
    assert switch.inject(3, frame(1, 254))[0][0] == 1
    loop = "for (bit<8> i = 1; i <= hdr.head.rounds"
    line = next(number for number, text in enumerate(SOURCE.read_text().splitlines(), start=1) if loop in text)
    assert lines == [f"{SOURCE}:{line}:13: a frame from port 3 was dropped: its loops took more than 65536 steps"]


def test_the_log_is_not_flooded() -> None:
    """A line a second at most is logged of frames in a row, which says how many it stands for."""
    switch = compiled(max_steps=1)
    lines: list[str] = []
    switch.on_log(lines.append)
    for _ in range(50_000):
        switch.inject(0, frame(1, 2))
    assert switch.statistics(0)["drops"][CAUSE] == 50_000
    assert 1 <= len(lines) < 1000


@pytest.mark.parametrize("rounds", [1, 9, 10, 11])
def test_the_budget_is_exact(rounds: int) -> None:
    """A frame may take as many rounds as the budget says, and not one more."""
    switch = compiled(max_steps=10)
    assert len(switch.inject(0, frame(1, rounds))) == (rounds <= 10)
    assert switch.read_registers("rounds_taken") == [min(rounds, 10)]


def test_copies_and_passes_share_the_budget() -> None:
    switch = compiled(max_steps=30)
    replicate(switch)
    assert [port for port, _ in switch.inject(0, frame(32 + 16, 30))] == [2, 3, 4]  # ten rounds for each copy
    assert [port for port, _ in switch.inject(0, frame(32 + 16, 31))] == [2, 3]
    assert len(switch.inject(0, frame(128 + 1, 15))) == 1
    assert switch.inject(0, frame(128 + 1, 16)) == []
    for _ in range(2000):  # more than there are buffers: none is lost
        switch.inject(0, frame(32 + 16, 255))
    assert [port for port, _ in switch.inject(0, frame(32 + 16, 30))] == [2, 3, 4]


def test_the_interpreter_stops_at_the_same_step(rng: random.Random) -> None:
    limit = rng.randrange(5, 300)
    mine, other = compiled(limit), InterpretedSwitch(check_file(SOURCE).program, max_steps=limit)
    lines: tuple[list[str], list[str]] = ([], [])
    for switch, heard in zip((mine, other), lines, strict=True):
        replicate(switch)
        switch.on_log(heard.append)
    for _ in range(150):
        hostile = frame(rng.randrange(256), rng.choice((0, 3, 254, 255)), rng.choice((0, 1, 9, 0xFFFF)))
        assert mine.inject(0, hostile) == other.inject(0, hostile), hostile.hex()
        assert mine.read_registers("rounds_taken") == other.read_registers("rounds_taken")
    assert mine.statistics(0)["drops"][CAUSE] == other.drops[CAUSE] > 0
    assert lines[0][0] == lines[1][0]


@pytest.mark.parametrize("steps", [0, -1, 1 << 30])
def test_a_budget_out_of_range_is_refused(steps: int) -> None:
    with pytest.raises(SwitchError, match="max_steps"):
        compiled(max_steps=steps)


LOOPS = """\
    bit<8> other = 0;
    action turn() { other = other + 1; }
    apply {
        %s
    }
"""


@pytest.mark.parametrize(
    ("code", "counted"),
    [
        ("for (bit<8> i = 0; i < 200; i = i + 1) { h.x = h.x + 1; }", [False]),
        ("for (bit<8> i = 200; i != 0; i = i - 8) { h.x = h.x + 1; }", [False]),
        ("for (int<8> i = -5; i < 5; i = i + 1) { h.x = h.x + 1; }", [False]),
        ("for (bit<8> i = 0; i <= 255; i = i + 1) { h.x = h.x + 1; }", [True]),
        ("for (bit<8> i = 0; i < h.x; i = i + 1) { h.y = h.y + 1; }", [True]),
        ("for (bit<8> i = h.x; i < 200; i = i + 1) { h.y = h.y + 1; }", [True]),
        ("for (bit<8> i = 0; i < 200; i = i + h.x) { h.y = h.y + 1; }", [True]),
        ("for (bit<8> i = 0; i < 200; i = i + 1) { i = h.x; }", [True]),
        ("for (bit<8> i = 0; i < 200; i = i + 1) { i[3:0] = h.x[3:0]; }", [True]),
        ("for (bit<8> i = 0; i < 200; i = i + 1) { change(i); }", [True]),
        ("for (bit<8> i = 0; i < 200; i = i + 1) { turn(); }", [False]),
        ("for (other = 0; other < 200; other = other + 1) { turn(); }", [True]),
        ("for (bit<8> i in 3 .. 9) { h.x = i; }", [False]),
        ("for (bit<8> i in 3 .. h.y) { h.x = i; }", [True]),
        ("for (bit<32> i in 0 .. 65535) { h.x = 1; }", [False]),
        ("for (bit<32> i in 0 .. 65536) { h.x = 1; }", [True]),
        (
            "for (bit<16> i in 1 .. 300) { for (bit<16> j in 1 .. 300) { h.x = 1; } }",
            [True, False],
        ),
    ],
)
def test_only_loops_without_a_bound_in_the_text_are_counted(code: str, counted: list[bool], tmp_path: Path) -> None:
    source = tmp_path / "loop.p4"
    source.write_text(
        "#include <core.p4>\n#include <v1model.p4>\nheader h_t { bit<8> x; bit<8> y; }\nstruct hs_t { h_t h; }\n"
        "struct m_t {}\nvoid change(inout bit<8> v) { v = 0; }\n"
        "parser P(packet_in p, out hs_t hs, inout m_t m, inout standard_metadata_t s) { state start {"
        " p.extract(hs.h); transition accept; } }\n"
        "control V(inout hs_t hs, inout m_t m) { apply {} }\n"
        "control Inner(inout h_t h) {\n" + LOOPS % code + "}\n"
        "control I(inout hs_t hs, inout m_t m, inout standard_metadata_t s) { Inner() inner;"
        " apply { inner.apply(hs.h); } }\n"
        "control E(inout hs_t hs, inout m_t m, inout standard_metadata_t s) { apply {} }\n"
        "control D(packet_out p, in hs_t hs) { apply { p.emit(hs.h); } }\n"
        "V1Switch(P(), V(), I(), E(), V(), D()) main;\n"
    )
    program = check_file(source).program
    inner = next(unit for unit in program.units if unit.name == "Inner")
    assert isinstance(inner, ir.ControlUnit)
    loops = [node for node in ir.walk(inner.body) if isinstance(node, Loop)]
    together = {number: takes for loop in loops for number, takes in counted_in(loop).items()}
    assert [together[id(loop)] for loop in loops] == counted
    assert [counted_in(loop)[id(loop)] for loop in loops] == counted
