"""Pictures are read from what they show: what is added to it is in them, in its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from catchment.demo.pictures import pipeline

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
