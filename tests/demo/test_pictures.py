"""Pictures are read from what they show: what is added to it is in them, in its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.demo.pictures import pipeline
from catchment.demo.pictures.rail_failure import rail_failure
from catchment.demo.pictures.snapshot import history
from catchment.rtl.hierarchy import Block, blocks_of

_PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header eth_h { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers_t { eth_h eth; }
struct meta_t { bit<16> kind; }
parser P(packet_in packet, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { packet.extract(h.eth); transition accept; }
}
control Verify(inout headers_t h, inout meta_t m) { apply { } }
control Seen(inout headers_t h) {
    register<bit<40>>(7) seen;
    apply { seen.write(0, h.eth.src[39:0]); }
}
control Last(inout headers_t h, inout meta_t m) {
    action keep() { m.kind = h.eth.kind; }
    ADDED
    apply { APPLIED }
}
control In(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    Seen() left0; Seen() left1; Last() last;
    action other() { }
    table right { key = { s.ingress_port : exact @name("port"); } actions = { other; } }
    apply {
        if (h.eth.isValid()) { left0.apply(h); left1.apply(h); } else { right.apply(); }
        last.apply(h, m);
    }
}
control Out(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h.eth); } }
V1Switch(P(), Verify(), In(), Out(), Verify(), D()) main;
"""
_TABLE = 'table added { key = { h.eth.dst : ternary @name("to"); } actions = { keep; } }'


def words(picture: str) -> list[str]:
    """The texts of a picture without marks."""
    return [re.sub(r"<[^>]+>", "", text) for text in re.findall(r"<text[^>]*>(.*?)</text>", picture)]


@pytest.mark.parametrize("added", [False, True])
def test_a_table_of_a_program_is_in_its_picture(tmp_path: Path, *, added: bool) -> None:
    program = tmp_path / "small.p4"
    source = _PROGRAM.replace("ADDED", _TABLE if added else "")
    program.write_text(source.replace("APPLIED", "added.apply();" if added else ""))
    found = words(pipeline.draw(program))
    last = ["last", *(["table added: to ternary"] if added else [])]
    arms = ["left0", "register seen: 7 of bit&lt;40&gt;", "left1", "register seen: 7 of bit&lt;40&gt;"]
    assert found == [
        "parser", "takes: eth", "ingress", *arms, "right", "table right: port exact", *last,
        "replication", "makes: a copy for each port of a multicast group", "egress, of each copy", "deparser",
    ]  # fmt: skip


def test_arms_of_a_fork_lie_side_by_side(tmp_path: Path) -> None:
    program = tmp_path / "small.p4"
    program.write_text(_PROGRAM.replace("ADDED", "").replace("APPLIED", ""))
    picture = pipeline.draw(program)
    places = {
        name: (float(x), float(y))
        for x, y, name in re.findall(r'<text class="name" x="(\d+)" y="(\d+)">(\w+)</text>', picture)
    }
    assert places["left0"][1] == places["right"][1] < places["left1"][1] < places["last"][1]
    assert places["left0"][0] == places["left1"][0] < places["right"][0]


def test_blocks_of_the_nic_are_those_that_verilator_finds() -> None:
    nic = blocks_of("nic")
    shell, streams = nic.inside
    assert (shell.module, streams.module) == ("nic_shell", "transport")
    assert shell.feeds == ("streams",) and streams.feeds == ("shell",)
    ends = {block.module: block.outside for block in _all_blocks(nic) if block.outside}
    assert ends == {
        "nic_registers": ("s_axil",),
        "axi_read_engine": ("m_axi",),
        "axi_write_engine": ("m_axi",),
        "frame_gate": ("m_axis_tx", "s_axis_rx"),
    }
    lanes = {block.module: block.count for block in _all_blocks(nic) if block.count > 1}
    assert lanes == {"float_lane_to_int": 16, "int_lane_to_float": 16}  # of a beat of 64 bytes
    assert "sync_fifo" not in {block.module for block in _all_blocks(nic)}


def _all_blocks(block: Block) -> list[Block]:
    return [block, *(inside for each in block.inside for inside in _all_blocks(each))]


def test_steps_leave_a_snapshot_as_it_was() -> None:
    rows = history()
    taken = [cells for _, cells in rows[1:]]
    assert all(any(cell.needed in {"kept", "both"} for cell in cells.values()) for cells in taken)
    for cells in taken:
        kept = [(layer, cell.step) for (_, layer), cell in cells.items() if cell.needed in {"kept", "both"}]
        assert sorted(kept) == [(0, 1), (1, 1), (2, 1)]
    *_, last = taken
    assert {cell.needed for cell in last.values()} == {"both", "old"}


def test_a_failed_rails_sums_are_made_again_on_the_other() -> None:
    found = words(rail_failure().svg())
    # Both workers get the sum of 4 on the other rail; on their own one of two copies was lost, and 5 had none.
    assert (found.count("FA 4: 11"), found.count("FA 5: 11")) == (4, 2)
    assert (found.count("PA 5: 10"), found.count("5: workers 01, sum 1"), found.count("5: workers 11, sum 11")) == (
        2,
        1,
        1,
    )
