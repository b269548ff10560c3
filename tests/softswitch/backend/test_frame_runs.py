"""Lanes that stay in the frame until a loop takes them: what leaves is the same, and nothing else looks at them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from backend_programs import program, switch

from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.frontend import check_text
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.compiler.preprocess import preprocess

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
        value = held + value;
        sum.write(slot.index, value);
    }
}
"""
APPLY = "slot_t slot = { hdr.h.index, hdr.h.keep }; lanes.apply(hdr.l, slot);"


def parts(*, calls: int = LANES, more: str = "", ingress: str = APPLY, **others: str) -> dict[str, str]:
    """Frames of LANES lanes that are added to the slot which the frame names, and leave by group 7."""
    fields = " ".join(f"bit<32> d{k};" for k in range(LANES))
    instances = " ".join(f"Lane() lane{k};" for k in range(LANES))
    applies = " ".join(f"lane{k}.apply(l.d{k}, slot);" for k in range(calls))
    return {
        "declarations": f"""
        header lanes_t {{ {fields} }}
        header h_t {{ bit<8> what; bit<32> index; bit<32> keep; }}
        struct slot_t {{ bit<32> index; bit<32> keep; }}
        {LANE}
        control Lanes(inout lanes_t l, in slot_t slot) {{ {instances} apply {{ {applies} {more} }} }}
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


def stays(folder: Path, **given: str | int) -> bool:
    source = folder / "code.p4"
    source.write_text(program(**parts(**given)))
    checked = check_text(preprocess(source, (), None), str(source))
    return "frame_r_d0" in generate(checked.program, make_p4info(checked.program), "code")


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
    assert not stays(tmp_path, egress="bit<16> sum; hash(sum, HashAlgorithm.crc16, 16w0, { hdr.l }, 32w65536);")


def frame(what: int, index: int, keep: int, lanes: list[int], tail: bytes = b"") -> bytes:
    return bytes([what]) + b"".join(v.to_bytes(4, "big") for v in [index, keep, *lanes]) + tail


class Model:
    """What the program does, lane by lane."""

    def __init__(self) -> None:
        self.sums = [[0] * SLOTS for _ in range(LANES)]

    def add(self, index: int, keep: int, lanes: list[int]) -> list[int]:
        out = []
        for held, lane in zip(self.sums, lanes, strict=True):
            value = ((held[index] if index < SLOTS else 0) & keep) + lane & ONES
            if index < SLOTS:
                held[index] = value
            out.append(value)
        return out


PASSES_ON, ADDS, ADDS_TWICE, DROPS_LANES, AGAIN = 1, 2, 3, 4, 5
INGRESS = f"""
slot_t slot = {{ hdr.h.index, hdr.h.keep }};
if (hdr.h.what != {PASSES_ON}) {{ lanes.apply(hdr.l, slot); }}
if (hdr.h.what == {ADDS_TWICE}) {{ lanes.apply(hdr.l, slot); }}
if (hdr.h.what == {DROPS_LANES}) {{ hdr.l.setInvalid(); }}
"""
EGRESS = f"""
if (hdr.h.what == {AGAIN}) {{ hdr.h.what = {ADDS}; recirculate_preserving_field_list(0); }}
hdr.h.keep = hdr.h.keep + (bit<32>)sm.egress_rid;
"""


@pytest.mark.sampled(2)
def test_what_leaves_is_what_the_lanes_were(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "frames", **parts(ingress=INGRESS, egress=EGRESS))
    target.multicast(7, [(1, 0), (2, 1)])
    model = Model()
    for _ in range(200):
        what = rng.choice([0, PASSES_ON, ADDS, ADDS_TWICE, DROPS_LANES, AGAIN])
        index, keep = rng.randrange(SLOTS + 1), rng.choice([0, ONES, rng.getrandbits(32)])
        lanes = [] if what == 0 else [rng.getrandbits(32) for _ in range(LANES)]
        tail = rng.randbytes(rng.randrange(3))
        left = target.inject(5, frame(what, index, keep, lanes, tail))
        if what == AGAIN:
            # Each replica is added once more; the second one finds the first one's sum.
            once = model.add(index, keep, lanes)
            wanted = []
            for rid in (0, 1):
                kept = keep + rid & ONES
                sums = model.add(index, kept, once)
                wanted += [(1 + other, frame(ADDS, index, kept + other & ONES, sums, tail)) for other in (0, 1)]
            assert left == wanted
            continue
        out = lanes if what == PASSES_ON else model.add(index, keep, lanes or [0] * LANES)
        if what == ADDS_TWICE:
            out = model.add(index, keep, out)
        sent = [] if what in {0, DROPS_LANES} else out
        assert left == [(1 + rid, frame(what, index, keep + rid & ONES, sent, tail)) for rid in (0, 1)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == model.sums


def test_a_short_frame_leaves_as_it_came(tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "short", **parts())
    target.multicast(7, [(1, 0)])
    whole = frame(ADDS, 0, ONES, [rng.getrandbits(32) for _ in range(LANES)])
    assert target.inject(5, whole) == [(1, whole)]
    sums = [target.read_registers(f"lane{k}.sum") for k in range(LANES)]
    short = whole[:-1]
    assert target.inject(5, short) == [(1, short)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == sums
