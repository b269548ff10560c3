"""Lanes that stay in the frame until a loop takes them, and in registers from then on: what leaves is the same, and
nothing else looks at them."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from backend_programs import generated, switch

from catchment.checkout import ROOT
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.frontend import check_text
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.preprocess import preprocess
from catchment.softswitch.toolchain import INCLUDES, flags

LANES = 64
SLOTS = 4
ONES = 0xFFFFFFFF
LANE = """
control Lane(inout bit<32> value, in slot_t slot) {
    register<bit<32>>(4) sum;
    apply {
        bit<32> held;
        sum.read(held, slot.index);
        held = held & slot.keep;
        value = value & slot.take;
        value = (held & ~slot.tops) + (value & ~slot.tops) ^ (held ^ value) & slot.tops;
        sum.write(slot.index, value);
    }
}
"""
READER = LANE.replace("inout bit<32> value", "in bit<32> given").replace("apply {", "apply { bit<32> value = given;")
SLOT = "slot_t slot = { hdr.h.index, hdr.h.keep, hdr.h.take, hdr.h.tops };"
APPLY = SLOT + " lanes.apply(hdr.l, slot);"
OTHER = "lanes_t other; other.setValid(); lanes.apply(other, slot);"
BOTH = """
control Both(inout lanes_t a, inout lanes_t b, in slot_t slot) {
    Lanes() lanes;
    apply { lanes.apply(b, slot); lanes.apply(a, slot); }
}
"""
TWICE = SLOT + "both.apply(hdr.l, hdr.l, slot);"


def parts(
    *,
    calls: int = LANES,
    more: str = "",
    ingress: str = APPLY,
    lane: str = LANE,
    direction: str = "inout",
    controls: str = "",
    **others: str,
) -> dict[str, str]:
    """Frames of LANES lanes that are added to the slot which the frame names, and leave by group 7."""
    fields = " ".join(f"bit<32> d{k};" for k in range(LANES))
    instances = " ".join(f"Lane() lane{k};" for k in range(LANES))
    applies = " ".join(f"lane{k}.apply(l.d{k}, slot);" for k in range(calls))
    return {
        "declarations": f"""
        header lanes_t {{ {fields} }}
        header h_t {{ bit<8> what; bit<32> index; bit<32> keep; bit<32> take; bit<32> tops; }}
        struct slot_t {{ bit<32> index; bit<32> keep; bit<32> take; bit<32> tops; }}
        {lane}
        control Lanes({direction} lanes_t l, in slot_t slot) {{ {instances} apply {{ {applies} {more} }} }}
        {controls}
        """,
        "headers": "h_t h; lanes_t l;",
        "parser": """
        state start { packet.extract(hdr.h); transition select(hdr.h.what) { 0: accept; default: lanes; } }
        state lanes { packet.extract(hdr.l); transition accept; }
        """,
        "ingress_locals": "Lanes() lanes;",
        "ingress": "sm.mcast_grp = 7; " + ingress,
        "deparser": "packet.emit(hdr);",
        **others,
    }


def stays(folder: Path, **given: Any) -> bool:
    return "frame_r_d0" in generated(folder, **parts(**given))


def stays_in_cells(folder: Path, **given: Any) -> bool:
    return "cells_r_d0" in generated(folder, **parts(**given))


def test_which_lanes_stay_in_the_frame(tmp_path: Path) -> None:
    assert stays(tmp_path)
    assert stays(tmp_path, ingress=f"if (hdr.l.isValid()) {{ {APPLY} }} else {{ hdr.l.setValid(); }}")
    assert stays(tmp_path, egress="hdr.l.setInvalid();")
    assert stays(tmp_path, ingress=APPLY + "lanes.apply(hdr.l, slot);")
    assert not stays(tmp_path, calls=LANES - 1)
    assert not stays(tmp_path, more="l.d5 = 1;")
    assert not stays(tmp_path, ingress=APPLY + "hdr.h.keep = hdr.l.d5;")
    assert not stays(tmp_path, ingress="if (hdr.l.d5 == 1) { " + APPLY + " }")
    assert not stays(tmp_path, egress="hdr.l.d5[3:0] = 1;")
    assert not stays(tmp_path, egress="headers_t other = hdr; other.h.what = 1; hdr = other;")
    assert not stays(tmp_path, egress="lanes_t other = hdr.l; if (other == hdr.l) { hdr.h.what = 1; }")
    assert not stays(tmp_path, egress_locals="action sets() { hdr.l.d5 = 1; }", egress="sets();")
    table = "table t { key = { hdr.l.d5 : exact; } actions = { NoAction; } }"
    assert not stays(tmp_path, egress_locals=table, egress="t.apply();")
    assert not stays(tmp_path, meta="lanes_t other;")
    assert not stays(tmp_path, lane=READER, direction="in")
    assert not stays(tmp_path, egress="bit<16> sum; hash(sum, HashAlgorithm.crc16, 16w0, { hdr.l }, 32w65536);")


def test_which_lanes_stay_in_registers(tmp_path: Path) -> None:
    assert stays_in_cells(tmp_path)
    assert stays_in_cells(tmp_path, ingress=APPLY + "lanes.apply(hdr.l, slot);")
    assert stays_in_cells(tmp_path, egress="hdr.h.keep = 1;")
    assert not stays_in_cells(tmp_path, calls=LANES - 1)
    assert not stays_in_cells(tmp_path, calls=0)
    assert not stays_in_cells(tmp_path, egress="hdr.l.setInvalid();")
    write = "sum.write(slot.index, value);"
    assert not stays_in_cells(tmp_path, more="bit<32> other = 1; lane5.apply(other, slot);")
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, write + "value = value + 1;"))
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, "sum.write(slot.index, held);"))
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, "sum.write(slot.index & 3, value);"))
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, f"if (held != 0) {{ {write} }}"))
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, f"if (held == 0) {{ return; }} {write}"))
    assert not stays_in_cells(tmp_path, lane=LANE.replace(write, "").replace("sum.read", f"{write} sum.read"))


@pytest.mark.parametrize("lanes", [64, 1024])
def test_luwu_leaves_lanes_in_the_frame_and_sums_in_registers(lanes: int) -> None:
    source = ROOT / "p4src" / "luwu.p4"
    checked = check_text(preprocess(source, (), {"LANES": str(lanes)}), str(source))
    code = generate(checked.program, make_p4info(checked.program), "luwu")
    assert "cells_r_d0" in code
    assert "frame_r_d0" in code


def test_lanes_of_a_header_that_code_has_twice_do_not_stay_in_registers(tmp_path: Path) -> None:
    """A loop over the other one would change the cells."""
    assert not stays_in_cells(tmp_path, ingress=APPLY + OTHER)
    assert not stays_in_cells(tmp_path, controls=BOTH, ingress_locals="Both() both;", ingress=TWICE)
    clears = "control Clears(out lanes_t l) { apply { } }"
    locals_ = "Lanes() lanes; Clears() none;"
    assert stays_in_cells(tmp_path, controls=clears, ingress_locals=locals_)
    assert not stays_in_cells(tmp_path, controls=clears, ingress_locals=locals_, ingress=APPLY + "none.apply(hdr.l);")


def test_loops_for_what_masks_mostly_are(tmp_path: Path) -> None:
    code = generated(tmp_path, **parts())
    masks = [set(re.findall(r"f_(\w+) == ([^ )]+)", line)) for line in code.splitlines() if f"k < {LANES}" in line]
    through = {("take", "inv<32>(0"), ("tops", "0")}
    assert masks == [through | {("keep", "0")}, through | {("keep", "inv<32>(0")}, {("keep", "0")}, set(), set()]


def test_all_loops_are_vectorized(tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++, which says what it has vectorized")
    source = tmp_path / "code.cpp"
    source.write_text(generated(tmp_path, **parts()))
    says = ["-fopt-info-vec-optimized", "-o", str(tmp_path / "code.so")]
    command = [compiler, *flags(), *(f"-I{folder}" for folder in INCLUDES), *says, str(source)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    lines = source.read_text().splitlines()
    loops = {number for number, line in enumerate(lines, 1) if f"k < {LANES}" in line}
    vectorized = {int(at) for at in re.findall(r"code\.cpp:(\d+):\d+: optimized:? +loop vectorized", said)}
    assert len(loops) == 5
    assert loops <= vectorized


def frame(what: int, slot: Sequence[int], lanes: list[int], tail: bytes = b"") -> bytes:
    return bytes([what]) + b"".join(v.to_bytes(4, "big") for v in [*slot, *lanes]) + tail


class Model:
    """What the program does, lane by lane."""

    def __init__(self) -> None:
        self.sums = [[0] * SLOTS for _ in range(LANES)]

    def add(self, slot: Sequence[int], lanes: list[int]) -> list[int]:
        index, keep, take, tops = slot
        out = []
        for held, lane in zip(self.sums, lanes, strict=True):
            old, new = (held[index] if index < SLOTS else 0) & keep, lane & take
            value = ((old & ~tops) + (new & ~tops) ^ (old ^ new) & tops) & ONES
            if index < SLOTS:
                held[index] = value
            out.append(value)
        return out


PASSES_ON, ADDS, ADDS_TWICE, DROPS_LANES, AGAIN, CLONED = 1, 2, 3, 4, 5, 6
REPLICA = 5  # an instance_type
INGRESS = f"""
{SLOT}
if (hdr.h.what != {PASSES_ON}) {{ lanes.apply(hdr.l, slot); }}
if (hdr.h.what == {ADDS_TWICE}) {{ lanes.apply(hdr.l, slot); }}
if (hdr.h.what == {DROPS_LANES}) {{ hdr.l.setInvalid(); }}
if (hdr.h.what == {CLONED}) {{ clone(CloneType.I2E, 5); }}
"""
EGRESS = f"""
if (hdr.h.what == {CLONED} && sm.instance_type == {REPLICA}) {{ clone(CloneType.E2E, 6); }}
if (hdr.h.what == {AGAIN}) {{ hdr.h.what = {ADDS}; recirculate_preserving_field_list(0); }}
hdr.h.keep = hdr.h.keep + (bit<32>)sm.egress_rid;
"""


@pytest.mark.sampled(2)
def test_what_leaves_is_what_the_lanes_were(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "frames", **parts(ingress=INGRESS, egress=EGRESS))
    target.multicast(7, [(1, 0), (2, 1)])
    target.clone_session(5, [3])
    target.clone_session(6, [4, 6])
    model = Model()
    for _ in range(200):
        what = rng.choice([0, PASSES_ON, ADDS, ADDS_TWICE, DROPS_LANES, AGAIN, CLONED])
        keep, take = (rng.choice([0, ONES, ONES, rng.getrandbits(32)]) for _ in range(2))
        slot = index, _, *masks = rng.randrange(SLOTS + 1), keep, take, rng.choice([0, 0, 0x80008000])
        lanes = [] if what == 0 else [rng.getrandbits(32) for _ in range(LANES)]
        tail = rng.randbytes(rng.randrange(3))
        left = target.inject(5, frame(what, slot, lanes, tail))
        if what == AGAIN:
            # Each replica is added once more; the second one finds the first one's sum.
            once = model.add(slot, lanes)
            wanted = []
            for rid in (0, 1):
                kept = keep + rid & ONES
                sums = model.add([index, kept, *masks], once)
                wanted += [
                    (1 + other, frame(ADDS, [index, kept + other & ONES, *masks], sums, tail)) for other in (0, 1)
                ]
            assert left == wanted
            continue
        out = lanes if what == PASSES_ON else model.add(slot, lanes or [0] * LANES)
        if what == ADDS_TWICE:
            out = model.add(slot, out)
        sent = [] if what in {0, DROPS_LANES} else out
        replicas = [frame(what, [index, keep + rid & ONES, *masks], sent, tail) for rid in (0, 1)]
        if what == CLONED:
            # A clone of what came leaves first; those of each replica follow it.
            clones = [(port, replica) for rid, replica in enumerate(replicas) for port in (1 + rid, 4, 6)]
            assert left == [(3, frame(what, slot, lanes, tail)), *clones]
            continue
        assert left == [(1 + rid, replica) for rid, replica in enumerate(replicas)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == model.sums


@pytest.mark.sampled(2)
def test_a_loop_over_another_header_changes_nothing_that_leaves(tmp_path: Path, rng: random.Random) -> None:
    """Its lanes are not known, but that they replace what cells of the slot hold."""
    target = switch(tmp_path, "beside", **parts(ingress=APPLY + OTHER))
    target.multicast(7, [(1, 0)])
    came = frame(ADDS, [0, 0, ONES, 0], [rng.getrandbits(32) for _ in range(LANES)])
    assert target.inject(5, came) == [(1, came)]


@pytest.mark.sampled(2)
def test_a_header_under_two_names_leaves_as_the_last_of_them_is(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "both", **parts(controls=BOTH, ingress_locals="Both() both;", ingress=TWICE))
    target.multicast(7, [(1, 0)])
    model = Model()
    for _ in range(50):
        slot = [rng.randrange(SLOTS), ONES, ONES, 0]
        lanes = [rng.getrandbits(32) for _ in range(LANES)]
        under_b, _ = model.add(slot, lanes), model.add(slot, lanes)
        assert target.inject(5, frame(ADDS, slot, lanes)) == [(1, frame(ADDS, slot, under_b))]


@pytest.mark.sampled(2)
def test_lanes_that_a_unit_only_reads_leave_as_they_came(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "reads", **parts(lane=READER, direction="in"))
    target.multicast(7, [(1, 0)])
    model = Model()
    for _ in range(50):
        slot = [rng.randrange(SLOTS), ONES, ONES, 0]
        lanes = [rng.getrandbits(32) for _ in range(LANES)]
        model.add(slot, lanes)
        came = frame(ADDS, slot, lanes)
        assert target.inject(5, came) == [(1, came)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == model.sums


@pytest.mark.sampled(2)
def test_lanes_that_are_not_what_their_cells_hold(tmp_path: Path, rng: random.Random) -> None:
    write = "sum.write(slot.index, value);"
    lane = LANE.replace(write, f"{write} value = value + slot.index;")
    target = switch(tmp_path, "more", **parts(lane=lane))
    target.multicast(7, [(1, 0), (2, 1)])
    model = Model()
    for _ in range(20):
        slot = [rng.randrange(SLOTS + 1), rng.choice([0, ONES]), ONES, 0]
        lanes = [rng.getrandbits(32) for _ in range(LANES)]
        left = target.inject(5, frame(ADDS, slot, lanes))
        wanted = frame(ADDS, slot, [value + slot[0] & ONES for value in model.add(slot, lanes)])
        assert left == [(1, wanted), (2, wanted)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == model.sums


def test_a_short_frame_leaves_as_it_came(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "short", **parts())
    target.multicast(7, [(1, 0)])
    whole = frame(ADDS, [0, ONES, ONES, 0], [rng.getrandbits(32) for _ in range(LANES)])
    assert target.inject(5, whole) == [(1, whole)]
    sums = [target.read_registers(f"lane{k}.sum") for k in range(LANES)]
    short = whole[:-1]
    assert target.inject(5, short) == [(1, short)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == sums
