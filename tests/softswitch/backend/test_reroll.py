"""Sub-controls in a row as one loop: the same results as one call after the other, and only where that is so."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest
from backend_programs import generated, program, switch

from catchment.softswitch.build import build

LANES = 16


def parts(argument: str, order: list[int] | None = None, index: str = "factor & 3") -> dict[str, str]:
    """LANES accumulators over the lanes of one header; `argument` is the second one of every call."""
    fields = " ".join(f"bit<32> d{k};" for k in range(LANES))
    instances = " ".join(f"Lane() lane{k};" for k in range(LANES))
    calls = " ".join(f"lane{k}.apply(l.d{k}, {argument.format(k=k)});" for k in order or range(LANES))
    return {
        "declarations": f"""
        header lanes_t {{ {fields} }}
        header h_t {{ bit<8> index; bit<32> factor; }}
        control Lane(inout bit<32> value, in bit<32> factor) {{
            register<bit<32>>(4) sum;
            apply {{
                bit<32> held;
                sum.read(held, {index});
                value = held + value * factor;
                sum.write({index}, value);
            }}
        }}
        control Other(inout bit<32> value) {{ Lane() lane; apply {{ lane.apply(value, 1); }} }}
        control Lanes(inout lanes_t l, in bit<32> factor) {{ {instances} apply {{ {calls} }} }}
        """,
        "headers": "h_t h; lanes_t l;",
        "parser": "state start { packet.extract(hdr.h); packet.extract(hdr.l); transition accept; }",
        "ingress_locals": "Lanes() lanes;",
        "ingress": "sm.egress_spec = 1; lanes.apply(hdr.l, hdr.h.factor);",
        "deparser": "packet.emit(hdr);",
    }


def test_what_becomes_a_loop(tmp_path: Path) -> None:
    assert f"k < {LANES}" in generated(tmp_path, **parts("factor"))
    swapped = [1, 0, *range(2, LANES)]
    assert f"k < {LANES}" not in generated(tmp_path, **parts("factor", swapped))
    assert "++k" not in generated(tmp_path, **parts("l.d0"))  # the first round changes what the others read
    assert "++k" not in generated(tmp_path, **parts("l.d0 + 1"))


def test_cells_of_a_unit_within_another_lie_between_those_beside_it(tmp_path: Path) -> None:
    """Registers lie in the order of all instances: a loop would take that of the nested unit for its next one."""
    for declared in ("", " Lane() spare_a; ", " Other() other_a; "):
        instances = f"{declared}Lane() lane4;"
        given = parts("factor")
        given["declarations"] = given["declarations"].replace("Lane() lane4;", instances)
        assert (f"k < {LANES}" in generated(tmp_path, **given)) == (not declared)


@pytest.mark.sampled(2)
def test_each_unit_keeps_its_own_registers(tmp_path: Path) -> None:
    given = parts("factor")
    given["declarations"] = given["declarations"].replace("Lane() lane4;", "Other() other; Lane() lane4;")
    target = switch(tmp_path, "nested", **given)
    lanes = range(1, LANES + 1)
    frame = b"\0" + (1).to_bytes(4, "big") + b"".join(v.to_bytes(4, "big") for v in lanes)
    assert target.inject(2, frame) == [(1, frame)]
    assert [target.read_registers(f"lane{k}.sum")[1] for k in range(LANES)] == list(lanes)
    assert target.read_registers("other.lane.sum") == [0] * 4


def test_the_next_cells_are_asked_for_where_callers_share_them_and_say_which(tmp_path: Path) -> None:
    wanted = "if (pkt.engine.shared) t1.i_sum.fetch(to_u64(t2) + 1);"
    assert wanted in generated(tmp_path, **parts("factor", index="factor"))
    assert ".fetch(" not in generated(tmp_path, **parts("factor", index="factor & 3"))


def test_what_asks_for_cells_stays_in_the_program(tmp_path: Path) -> None:
    """A compiler may take a call of what only fetches for one that does nothing."""
    source = tmp_path / "fetches.p4"
    source.write_text(program(**parts("factor", index="factor")))
    command = ["objdump", "--disassemble", build(source, strict=True).shared_object]
    instructions = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert re.search(r"\t(prefetch|prfm)", instructions)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("argument", ["factor", "l.d0"])
def test_results_are_those_of_single_calls(argument: str, tmp_path: Path, rng: random.Random) -> None:
    target = switch(tmp_path, "reroll", **parts(argument))
    held = [[0] * 4 for _ in range(LANES)]
    for _ in range(50):
        factor = rng.getrandbits(32)
        lanes = [rng.getrandbits(32) for _ in range(LANES)]
        frame = b"\0" + factor.to_bytes(4, "big") + b"".join(v.to_bytes(4, "big") for v in lanes)
        for k in range(LANES):
            used = factor if argument == "factor" else lanes[0]
            held[k][used & 3] = lanes[k] = (held[k][used & 3] + lanes[k] * used) & 0xFFFFFFFF
        wanted = frame[:5] + b"".join(v.to_bytes(4, "big") for v in lanes)
        assert target.inject(2, frame) == [(1, wanted)]
    assert [target.read_registers(f"lane{k}.sum") for k in range(LANES)] == held
