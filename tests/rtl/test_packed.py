"""Packed structs read from the RTL packages: as wide as Verilator has them, bits where they belong, misfits refused."""

from __future__ import annotations

import random
import re
import subprocess
from pathlib import Path

import pytest

from catchment.rtl.packed import Layout, PackedError, layout
from catchment.rtl.sources import PACKAGES
from catchment.rtl.verilate import verilator

STRUCTS = [
    (path.stem, name)
    for path in PACKAGES
    for name in re.findall(r"typedef struct packed\s*\{[^}]*\}\s*(\w+)\s*;", path.read_text())
    if path.stem in ("transport_pkg", "hostif_pkg", "glm_pkg")
]


def test_every_struct_is_as_wide_as_verilator_has_it(tmp_path: Path) -> None:
    checks = [
        f'  if ($bits({package}::{name}) != {layout(package, name).bits}) $error("{name}");'
        for package, name in STRUCTS
    ]
    module = tmp_path / "widths.sv"
    module.write_text("\n".join(["module widths;", *checks, "endmodule", ""]))
    assert len(STRUCTS) > 15
    subprocess.run([verilator(), "--lint-only", *PACKAGES, module, "--top", "widths"], check=True)


def any_values(struct: Layout, rng: random.Random) -> dict[str, int]:
    least = {m.name: -(1 << m.bits - 1) if m.signed else 0 for m in struct.members}
    return {m.name: rng.randrange(least[m.name], least[m.name] + (1 << m.bits)) for m in struct.members}


def test_members_stand_from_the_high_bits_down(rng: random.Random) -> None:
    meta = layout("transport_pkg", "vector_meta_t")
    values = any_values(meta, rng)
    packed = meta.pack(values)
    assert packed & 0xFFFF == values["bytes"]
    assert packed >> 43 == values["foreign"]
    assert packed >> 35 & 0xFF == values["dtype"]
    assert packed >> 27 & 0xFF == values["exp"] & 0xFF
    assert meta.unpack(packed) == values
    assert meta.of_words(meta.words(values)) == values


def test_structs_stand_within_structs(rng: random.Random) -> None:
    rounds = layout("glm_pkg", "rounds_t")
    (address,) = [m.inner for m in rounds.members if m.inner is not None]
    inner = any_values(address, rng)
    outer = {m.name: rng.getrandbits(m.bits) for m in rounds.members if m.inner is None}
    packed = rounds.pack({**outer, "address": inner})
    assert packed >> rounds.bits - 1 == outer["enable"]
    assert packed & 0xFFFF == inner["peer_port"]
    assert rounds.unpack(packed) == {**outer, **inner}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bytes": 1 << 16}, r"vector_meta_t\.bytes: 65536 does not fit into 16 bits"),
        ({"exp": 128}, r"vector_meta_t\.exp: 128 does not fit into 8 bits"),
        ({"sat": -1}, r"vector_meta_t\.sat: -1 does not fit into 1 bits"),
        ({"colour": 1}, "vector_meta_t has no member colour"),
        ({"dtype": {}}, r"vector_meta_t\.dtype: give a number"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, int], message: str, rng: random.Random) -> None:
    meta = layout("transport_pkg", "vector_meta_t")
    with pytest.raises(PackedError, match=message):
        meta.pack({**any_values(meta, rng), **change})


def test_a_missing_member_and_a_missing_struct_are_named() -> None:
    with pytest.raises(PackedError, match="vector_meta_t: no value for foreign"):
        layout("transport_pkg", "vector_meta_t").pack({})
    with pytest.raises(PackedError, match="glm_pkg knows no gone_t"):
        layout("glm_pkg", "gone_t")
    with pytest.raises(PackedError, match="there is no package gone_pkg"):
        layout("gone_pkg", "gone_t")
