"""What egress may change, and so what replicas do not share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from backend_programs import generated, switch

DECLARATIONS = """
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; bit<8> e; bit<8> f; bit<8> g; bit<8> i; bit<8> j; bit<8> k; }
header one_t { bit<8> v; }
struct inner_t { bit<8> x; bit<8> y; }
void add_to(inout bit<8> to, in bit<8> what) { to = to + what; }
control Adds(inout bit<8> to, in bit<8> what) { apply { to = to + what; } }
"""


def behind_verify(control: str) -> str:
    """A control that may name the program's headers: the part that verifies ends its own control, and begins this."""
    return "}} " + control.removesuffix("}}")


PARTS = {
    "headers": "h_t h; one_t[3] s; one_t t; one_t u;",
    "meta": "bit<8> sliced; inner_t inner; bit<8> called; bit<8> acted; bit<8> bound; bit<8> read; bit<8> kept;",
    "parser": """
        state start {
            packet.extract(hdr.h); packet.extract(hdr.s[0]); packet.extract(hdr.s[1]); packet.extract(hdr.s[2]);
            packet.extract(hdr.t); packet.extract(hdr.u); transition accept;
        }
    """,
    "ingress": """
        sm.mcast_grp = 7;
        meta.sliced = 1; meta.inner.x = 1; meta.inner.y = 1; meta.called = 1; meta.acted = 1; meta.bound = 1;
        meta.kept = 9;
    """,
    "verify": behind_verify("""control AddsInside(inout headers_t all, inout inner_t inner, in bit<8> what) {
        Adds() adds;
        apply { adds.apply(all.t.v, what); adds.apply(inner.y, what); }}"""),
    "egress_locals": """
        register<bit<8>>(1) cell;
        AddsInside() inside;
        action acts(inout bit<8> to, in bit<8> what) { to = to + what; }
        action directly() { meta.inner.x = meta.inner.x + (bit<8>)sm.egress_rid; }
        table bound { actions = { acts(meta.bound, (bit<8>)sm.egress_rid); }
                      const default_action = acts(meta.bound, (bit<8>)sm.egress_rid); }
        table direct { actions = { directly; } const default_action = directly(); }
    """,
    "egress": """
        bit<8> rid = (bit<8>)sm.egress_rid;
        bit<8> at = 1;
        cell.write(0, 5);
        hdr.h.a = hdr.h.a + rid;
        meta.sliced[7:0] = meta.sliced + rid; hdr.h.b = meta.sliced;
        add_to(meta.called, rid); hdr.h.c = meta.called;
        acts(meta.acted, rid); hdr.h.d = meta.acted;
        bound.apply(); hdr.h.e = meta.bound;
        direct.apply(); hdr.h.f = meta.inner.x;
        inside.apply(hdr, meta.inner, rid); hdr.h.g = meta.inner.y;
        hdr.h.i = meta.read; cell.read(meta.read, 0);
        hdr.h.j = (bit<8>)sm.deq_timedelta; sm.deq_timedelta = 3;
        hdr.h.k = meta.kept;
        hdr.s[at].v = hdr.s[at].v + rid;
        if (rid == 10) { hdr.s.pop_front(1); mark_to_drop(sm); }
        if (rid == 20) { hdr.u.setInvalid(); }
    """,
    "compute": "update_checksum(true, { hdr.h.a }, hdr.u.v, HashAlgorithm.identity);",
    "deparser": "packet.emit(hdr);",
}
RIDS = [10, 20, 30]


def test_every_replica_sees_what_ingress_left(tmp_path: Path) -> None:
    """Egress and the computing of checksums write in every way there is."""
    target = switch(tmp_path, "replicas", declarations=DECLARATIONS, **PARTS)
    target.multicast(7, [(port, rid) for port, rid in enumerate(RIDS, 1)])
    for _ in range(2):
        left = target.inject(5, bytes([1, *[0] * 9, 7, 1, 8, 1, 6]) + b"tail")
        for (port, frame), rid in zip(left, RIDS[1:], strict=True):
            sums = [1 + rid] * 7
            own = [*sums, 0, 0, 9, 7, 1 + rid, 8, 1 + rid]
            assert (port, frame) == (RIDS.index(rid) + 1, bytes(own if rid == 20 else [*own, 1 + rid]) + b"tail")


def restored(folder: Path, **parts: str) -> set[str]:
    """Members that replicas do not share."""
    parts |= {
        "declarations": "header one_t { bit<8> v; }",
        "headers": "one_t t; one_t u; one_t[2] s;",
        "meta": "bit<8> a; bit<8> b;",
        "parser": "state start { packet.extract(hdr.t); transition accept; }",
    }
    code = generated(folder, **parts)
    body = code.split("static void restore(")[1].split("}")[0]
    return {f"{place}.{member}" if member else place for place, member in re.findall(r"(\w+)(?:\.f_(\w+))? = ", body)}


DROPS = {"standard.egress_spec", "standard.mcast_grp"}


@pytest.mark.parametrize(
    ("egress", "found"),
    [
        ("", set()),
        ("bit<8> x = hdr.t.v; x = meta.a;", set()),
        ("meta.a = hdr.t.v;", {"metadata.a"}),
        ("if (hdr.t.isValid()) { hdr.u.setInvalid(); }", {"headers.u"}),
        ("mark_to_drop(sm);", DROPS),
        ("hdr.s.pop_front(1);", {"headers.s"}),
        ("inside.apply(meta.b, hdr); inside.apply(meta.b, hdr);", {"metadata.b", "headers.t"}),
        ("gives.apply(hdr.u, meta.a);", {"headers.u", "metadata.a"}),
        ("acts();", {"headers.u", "metadata.a"}),
        ("headers_t other = hdr; other.t.v = 1; hdr = other;", {"headers"}),
        ("whole(hdr);", {"headers"}),
        ("meta_t other = { 1, 2 }; other.a = 2;", set()),
        ("random(meta.b, 0, 1);", {"metadata.b"}),
    ],
)
def test_what_is_not_written_is_shared(egress: str, found: set[str], tmp_path: Path) -> None:
    """All that egress itself, its actions and the controls that it applies may write, and nothing else."""
    locals_ = "action acts() { hdr.u.v = 1; meta.a = 1; }" if "acts" in egress else ""
    others = behind_verify("""
        control Inside(inout bit<8> x, inout headers_t all) { apply { x = all.u.v; all.t.v = 1; } }
        control Gives(out one_t given, out bit<8> x) { apply {}}""")
    locals_ += "action whole(out headers_t given) { given.t.v = 1; } Inside() inside; Gives() gives;"
    assert restored(tmp_path, verify=others, egress_locals=locals_, egress=egress) == found


def test_what_computing_checksums_writes_is_not_shared(tmp_path: Path) -> None:
    compute = "meta.a = 1; update_checksum(true, { hdr.u.v }, hdr.t.v, HashAlgorithm.csum16);"
    assert restored(tmp_path, compute=compute) == {"headers.t", "metadata.a"}
