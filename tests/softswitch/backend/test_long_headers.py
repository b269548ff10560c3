"""Headers with long runs: neither cleared nor copied where the program cannot tell, and only there."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from backend_programs import generated, switch

LANES = 64
EXTRACT = """
    state start {{
        packet.extract(hdr.h); {before}
        transition select(hdr.h.what) {{ 1: lanes; default: accept; }}
    }}
    state lanes {{ packet.extract(hdr.l); {behind} transition accept; }}
"""


def parts(*, before: str = "", behind: str = "", ingress: str = "", egress: str = "", **more: str) -> dict[str, str]:
    """A header of 64 lanes that is there if the frame says so; frames go to group 7."""
    fields = " ".join(f"bit<32> d{k};" for k in range(LANES))
    return {
        "declarations": f"header h_t {{ bit<8> what; }} header lanes_t {{ {fields} }} {more.pop('declarations', '')}",
        "headers": "h_t h; lanes_t l;",
        "parser": EXTRACT.format(before=before, behind=behind),
        "ingress": f"sm.mcast_grp = 7; {ingress}",
        "egress": egress,
        "deparser": "packet.emit(hdr.h); packet.emit(hdr.l);",
        **more,
    }


def marks(folder: Path, **given: str) -> tuple[bool, bool]:
    """Whether the lanes are cleared late, and whether replicas share them."""
    code = generated(folder, **parts(**given))
    return "std::array<Part, 1> kLate" in code, "headers.f_l = headers_from.f_l;" not in code


def test_which_are_cleared_late_and_shared(tmp_path: Path) -> None:
    assert marks(tmp_path) == (True, True)
    assert marks(tmp_path, ingress="hdr.l.d5 = 1; hdr.l.setValid();") == (True, True)
    assert marks(tmp_path, before="hdr.l.d5 = 1;") == (False, True)
    assert marks(tmp_path, before="hdr.l.setValid();") == (False, True)
    assert marks(tmp_path, behind="meta.kept = hdr.l.d5;", meta="bit<32> kept;") == (False, True)
    assert marks(tmp_path, egress="hdr.l.d5 = 1;") == (True, False)
    assert marks(tmp_path, egress="hdr.l.setInvalid();") == (True, False)
    assert marks(tmp_path, compute="hdr.l.d5 = 1;") == (True, False)


def test_which_deparsers_only_emit(tmp_path: Path) -> None:
    def emits(deparser: str) -> bool:
        return "kOnlyEmits = true" in generated(tmp_path, **parts() | {"deparser": deparser})

    assert emits("packet.emit(hdr);")
    assert emits("if (hdr.h.what == 1) { packet.emit(hdr.l); } packet.emit(hdr.h);")
    assert not emits('packet.emit(hdr); log_msg("left");')


def frame(what: int, lanes: list[int]) -> bytes:
    return bytes([what]) + b"".join(lane.to_bytes(4, "big") for lane in lanes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "egress", ["", "hdr.l.d5 = hdr.l.d5 + (bit<32>)sm.egress_rid;", "if (sm.egress_rid == 10) { hdr.l.setInvalid(); }"]
)
def test_each_replica_sees_what_ingress_left(egress: str, tmp_path: Path, rng: random.Random) -> None:
    egress += " hdr.h.what = hdr.h.what + (bit<8>)sm.egress_rid;"
    target = switch(tmp_path, "replicas", **parts(ingress="hdr.l.d9 = hdr.l.d9 + 1;", egress=egress))
    rids = [10, 20, 30]
    target.multicast(7, [(port, rid) for port, rid in enumerate(rids, 1)])
    for _ in range(5):
        lanes = [rng.getrandbits(31) for _ in range(LANES)]
        left = target.inject(5, frame(1, lanes) + b"tail")
        lanes[9] += 1
        for (port, bytes_out), rid in zip(left, rids, strict=True):
            own = list(lanes)
            if "d5" in egress:
                own[5] += rid
            gone = "setInvalid" in egress and rid == 10
            assert port == rids.index(rid) + 1
            assert bytes_out == (bytes([1 + rid]) if gone else frame(1 + rid, own)) + b"tail"


def test_a_header_that_was_not_extracted_is_clear(tmp_path: Path, rng: random.Random) -> None:
    ingress = "if (hdr.h.what == 2) { hdr.l.setValid(); } hdr.l.d9 = hdr.l.d9 + 1;"
    target = switch(tmp_path, "clear", **parts(ingress=ingress))
    target.multicast(7, [(1, 0)])
    for _ in range(3):
        lanes = [rng.getrandbits(31) for _ in range(LANES)]
        kept = list(lanes)
        kept[9] += 1
        assert target.inject(5, frame(1, lanes)) == [(1, frame(1, kept))]
        clear = [0] * LANES
        clear[9] = 1
        assert target.inject(5, frame(2, [])) == [(1, frame(2, clear))]


def test_fields_of_a_header_that_a_frame_has_no_more_are_zero(tmp_path: Path, rng: random.Random) -> None:
    egress = "if (hdr.h.what == 1) { hdr.h.what = 2; hdr.l.setInvalid(); recirculate_preserving_field_list(0); }"
    ingress = "if (hdr.h.what == 2) { hdr.h.what = hdr.l.d5[7:0]; }"
    target = switch(tmp_path, "again", **parts(ingress=ingress, egress=egress))
    target.multicast(7, [(1, 0)])
    lanes = [rng.getrandbits(32) | 0x80 for _ in range(LANES)]
    assert target.inject(5, frame(1, lanes)) == [(1, frame(0, []))]
