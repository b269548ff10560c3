"""Match kinds, priorities, const entries, hit and miss, defaults, action profiles, direct counters."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from backend_programs import program, switch

from catchment.softswitch.build import BuiltProgram, build
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.inprocess import Switch
from catchment.softswitch.interpreter import InterpretedSwitch

HEADER = "header h_t { bit<32> a; bit<16> b; bit<8> c; bit<8> tag; bit<80> wide; }"
SIZE = 18
BASE = {
    "declarations": HEADER,
    "headers": "h_t h;",
    "parser": "state start { packet.extract(hdr.h); transition accept; }",
    "deparser": "packet.emit(hdr.h);",
}
ACTIONS = "action tag(bit<8> value) { hdr.h.tag = value; sm.egress_spec = 1; } action drop() { mark_to_drop(sm); }"


def frame(a: int = 0, b: int = 0, c: int = 0, wide: int = 0) -> bytes:
    return a.to_bytes(4, "big") + b.to_bytes(2, "big") + bytes([c, 0]) + wide.to_bytes(10, "big")


def tag_of(target: Switch, **fields: int) -> int | None:
    """The tag that the table gave, None for a drop."""
    out = target.inject(0, frame(**fields))
    assert len(out) <= 1
    return out[0][1][7] if out else None


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> BuiltProgram:
    tables = {
        "exact_t": "hdr.h.a : exact; hdr.h.b : exact; hdr.h.wide : exact;",
        "lpm_t": "hdr.h.c : exact; hdr.h.a : lpm;",
        "ternary_t": "hdr.h.a : ternary; hdr.h.b : ternary;",
        "range_t": "hdr.h.b : range; hdr.h.c : exact;",
        "optional_t": "hdr.h.a : optional; hdr.h.b : optional;",
    }
    text = "".join(
        f"table {name} {{ key = {{ {key} }} actions = {{ tag; drop; }} default_action = drop(); size = 4096; }}"
        for name, key in tables.items()
    )
    choose = "".join(f"if (sm.ingress_port == {i}) {name}.apply();" for i, name in enumerate(tables))
    source = tmp_path_factory.mktemp("p4") / "kinds.p4"
    source.write_text(program(ingress_locals=ACTIONS + text, ingress=choose, **BASE))
    return build(source, strict=True)


@pytest.fixture
def kinds(compiled: BuiltProgram) -> Switch:
    """A switch of every kind of match, its tables empty."""
    return Switch(compiled, seed=1)


@pytest.mark.sampled(4)
def test_exact_with_a_wide_field(kinds: Switch) -> None:
    key = {"hdr.h.a": 1, "hdr.h.b": 2, "hdr.h.wide": 3 << 70}
    kinds.insert("exact_t", key, "tag", value=7)
    assert kinds.inject(0, frame(1, 2, 9, 3 << 70))[0][1][7] == 7
    assert kinds.inject(0, frame(1, 2, 9, 3 << 69)) == []
    kinds.modify("exact_t", key, "tag", value=8)
    assert kinds.inject(0, frame(1, 2, 9, 3 << 70))[0][1][7] == 8
    with pytest.raises(SwitchError, match="has an entry with this key"):
        kinds.insert("exact_t", key, "tag", value=7)
    kinds.remove("exact_t", key)
    assert kinds.inject(0, frame(1, 2, 9, 3 << 70)) == []
    with pytest.raises(SwitchError, match="no entry with this key"):
        kinds.remove("exact_t", key)


def _mask(length: int) -> int:
    return (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF


def test_lpm_is_the_longest_prefix(kinds: Switch, rng: random.Random) -> None:
    routes: dict[tuple[int, int, int], int] = {}
    for i in range(300):
        length = rng.randrange(33)
        value = rng.choice([rng.getrandbits(32), 0x0A000000 | rng.getrandbits(12)]) & _mask(length)
        key = (rng.randrange(2), value, length)
        if key not in routes:
            routes[key] = i % 255 + 1
            kinds.insert("lpm_t", {"hdr.h.c": key[0], "hdr.h.a": (value, length)}, "tag", value=routes[key])
    for key in rng.sample(sorted(routes), 100):
        kinds.remove("lpm_t", {"hdr.h.c": key[0], "hdr.h.a": (key[1], key[2])})
        del routes[key]
    for _ in range(500):
        c = rng.randrange(2)
        a = rng.choice([rng.getrandbits(32), 0x0A000000 | rng.getrandbits(12)])
        fitting = [k for k in routes if k[0] == c and a & _mask(k[2]) == k[1]]
        out = kinds.inject(1, frame(a, 0, c))
        assert (out[0][1][7] if out else None) == (routes[max(fitting, key=lambda k: k[2])] if fitting else None)


def test_ternary_is_the_largest_priority(kinds: Switch, rng: random.Random) -> None:
    entries: dict[tuple[int, int, int, int, int], int] = {}
    masks = [0, 0xFF, 0xF0F0, 0xFFFFFFFF, 0xFF000000]
    for i in range(200):
        mask_a, mask_b = rng.choice(masks), rng.choice([0, 0xFF, 0xFFFF])
        a, b = rng.getrandbits(2) * 0x01010101 & mask_a, rng.getrandbits(2) & mask_b
        key = (a, mask_a, b, mask_b, i + 1)
        match = {n: (v, m) for n, v, m in (("hdr.h.a", a, mask_a), ("hdr.h.b", b, mask_b)) if m}
        entries[key] = rng.randrange(256)
        kinds.insert("ternary_t", match, "tag", priority=i + 1, value=entries[key])
    for _ in range(500):
        a, b = rng.getrandbits(2) * 0x01010101, rng.getrandbits(2)
        fitting = [k for k in entries if a & k[1] == k[0] and b & k[3] == k[2]]
        out = kinds.inject(2, frame(a, b))
        assert (out[0][1][7] if out else None) == (entries[max(fitting, key=lambda k: k[4])] if fitting else None)


def test_range_and_optional(kinds: Switch) -> None:
    kinds.insert("range_t", {"hdr.h.b": (10, 20), "hdr.h.c": 1}, "tag", priority=1, value=1)
    kinds.insert("range_t", {"hdr.h.b": (15, 30), "hdr.h.c": 1}, "tag", priority=2, value=2)
    found = {b: kinds.inject(3, frame(0, b, 1)) for b in (9, 10, 14, 15, 20, 30, 31)}
    tags = {b: out[0][1][7] if out else None for b, out in found.items()}
    assert tags == {9: None, 10: 1, 14: 1, 15: 2, 20: 2, 30: 2, 31: None}
    assert kinds.inject(3, frame(0, 15, 2)) == []
    kinds.insert("optional_t", {"hdr.h.a": 5}, "tag", priority=2, value=1)
    kinds.insert("optional_t", {"hdr.h.b": 6}, "tag", priority=1, value=2)
    tags = {(a, b): kinds.inject(4, frame(a, b)) for a, b in ((5, 6), (5, 1), (1, 6), (1, 1))}
    assert [out[0][1][7] if out else None for out in tags.values()] == [1, 1, 2, None]


def test_bad_entries_are_refused_with_a_reason(kinds: Switch) -> None:
    for match, priority, params, reason in (
        ({"hdr.h.a": (0, 33), "hdr.h.c": 0}, 0, {"value": 1}, "prefix of 33 bits"),
        ({"hdr.h.a": (1, 8), "hdr.h.c": 0}, 0, {"value": 1}, "outside its mask"),
        ({"hdr.h.a": (0, 8)}, 0, {"value": 1}, "must be given"),
        ({"hdr.h.a": (0, 8), "hdr.h.c": 256}, 0, {"value": 1}, "does not fit in 8 bits"),
        ({"hdr.h.a": (0, 8), "hdr.h.c": 0}, 4, {"value": 1}, "no priority"),
        ({"hdr.h.a": (0, 8), "hdr.h.c": 0}, 0, {"value": 256}, "does not fit in 8 bits"),
        ({"hdr.h.a": (0, 8), "hdr.h.c": 0}, 0, {}, "takes value"),
    ):
        with pytest.raises(SwitchError, match=reason):
            kinds.insert("lpm_t", match, "tag", priority=priority, **params)
    with pytest.raises(SwitchError, match="need a priority"):
        kinds.insert("ternary_t", {"hdr.h.a": (1, 1)}, "tag", value=1)
    with pytest.raises(SwitchError, match="unknown among the tables"):
        kinds.insert("nothing", {}, "tag", value=1)


@pytest.mark.sampled(4)
def test_const_entries_defaults_hit_and_action_run(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "const_entries",
        ingress_locals=ACTIONS
        + """
        table t {
            key = { hdr.h.a : ternary; hdr.h.b : exact; }
            actions = { tag; drop; @defaultonly NoAction; }
            const entries = {
                (0x10 &&& 0xF0, 1) : tag(1);
                (0x18, 1) : tag(2);
                (_, 2) : drop();
            }
            default_action = NoAction();
        }
        table keyless { actions = { tag; NoAction; } default_action = tag(100); }
        """,
        ingress="""
        if (t.apply().hit) { hdr.h.c = 1; } else { hdr.h.c = 2; sm.egress_spec = 3; }
        if (hdr.h.b == 3) {
            switch (keyless.apply().action_run) { tag: { hdr.h.c = 9; } default: { hdr.h.c = 8; } }
        }
        """,
        **BASE,
    )
    assert [(p, f[6], f[7]) for p, f in target.inject(0, frame(0x18, 1))] == [(1, 1, 1)]  # the first entry wins
    assert target.inject(0, frame(5, 2)) == []
    assert [(p, f[6], f[7]) for p, f in target.inject(0, frame(5, 1))] == [(3, 2, 0)]
    assert [(p, f[6], f[7]) for p, f in target.inject(0, frame(5, 3))] == [(1, 9, 100)]
    target.set_default("keyless", "NoAction")
    assert [(p, f[6]) for p, f in target.inject(0, frame(5, 3))] == [(3, 8)]
    target.set_default("keyless", None)
    assert [(p, f[6], f[7]) for p, f in target.inject(0, frame(5, 3))] == [(1, 9, 100)]
    with pytest.raises(SwitchError, match="const"):
        target.insert("t", {"hdr.h.b": 9}, "drop", priority=1)
    assert len(target.entries("t")) == 3


@pytest.mark.sampled(4)
def test_annotated_priorities_smallest_wins(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "annotated",
        ingress_locals=ACTIONS
        + """
        table t {
            key = { hdr.h.a : ternary; }
            actions = { tag; drop; }
            const entries = {
                0x01 &&& 0x0F : tag(1) @priority(3);
                0x21 : tag(2);
                0x21 &&& 0xF0 : tag(3) @priority(1);
            }
            default_action = drop();
        }
        """,
        ingress="t.apply();",
        **BASE,
    )
    assert [tag_of(target, a=a) for a in (0x11, 0x21, 0x22, 0x32)] == [1, 3, 3, None]


@pytest.mark.sampled(4)
def test_profiles_selectors_direct_counters(tmp_path: Path) -> None:
    target = switch(
        tmp_path,
        "profiles",
        ingress_locals=ACTIONS
        + """
        direct_counter(CounterType.packets_and_bytes) seen;
        action_profile(16) members;
        action_selector(HashAlgorithm.crc32, 32w64, 32w16) groups;
        table direct { key = { hdr.h.a : exact; } actions = { tag; drop; } counters = seen; default_action = drop(); }
        table by_member { key = { hdr.h.a : exact; } actions = { tag; drop; } implementation = members; }
        table by_group {
            key = { hdr.h.a : exact; hdr.h.b : selector; }
            actions = { tag; drop; }
            implementation = groups;
        }
        """,
        ingress="""
        sm.egress_spec = 511;
        if (sm.ingress_port == 0) direct.apply();
        else if (sm.ingress_port == 1) by_member.apply();
        else by_group.apply();
        """,
        **BASE,
    )
    target.insert("direct", {"hdr.h.a": 1}, "tag", value=1)
    for _ in range(3):
        target.inject(0, frame(1))
    target.inject(0, frame(2))
    assert [e.counter for e in target.entries("direct")] == [(3, 3 * SIZE)]

    target.insert_member("members", 4, "tag", value=44)
    target.insert("by_member", {"hdr.h.a": 1}, ("member", 4))
    assert target.inject(1, frame(1))[0][1][7] == 44
    with pytest.raises(SwitchError, match="does not exist"):
        target.insert("by_member", {"hdr.h.a": 2}, ("member", 5))

    for member in (1, 2, 3):
        target.insert_member("groups", member, "tag", value=member)
    target.insert_group("groups", 9, [(1, 1), (2, 1), (3, 2)])
    target.insert("by_group", {"hdr.h.a": 1}, ("group", 9))
    chosen = [target.inject(2, frame(1, b))[0][1][7] for b in range(400)]
    assert [target.inject(2, frame(1, b))[0][1][7] for b in range(400)] == chosen  # a flow keeps its member
    share = [chosen.count(m) for m in (1, 2, 3)]
    assert min(share) > 50
    assert share[2] > 1.4 * share[0]


@pytest.mark.sampled(4)
def test_a_program_with_an_empty_range_among_its_entries_is_loaded(tmp_path: Path) -> None:
    """An empty range matches nothing, and the control plane sees no such entry."""
    entries = "const entries = { 5 .. 1 : tag(7); 0 .. 9 : tag(8); 0 .. 20 : tag(9); }"
    table = f"table t {{ key = {{ hdr.h.c : range; }} actions = {{ tag; drop; }} default_action = drop(); {entries} }}"
    target = switch(tmp_path, "empty_range", ingress_locals=ACTIONS + table, ingress="t.apply();", **BASE)
    model = InterpretedSwitch(check_file(tmp_path / "empty_range.p4").program)
    for value, expected in ((1, 8), (3, 8), (5, 8), (9, 8), (10, 9), (21, None)):
        assert tag_of(target, c=value) == expected
        assert model.inject(0, frame(c=value)) == target.inject(0, frame(c=value))
    assert [e.match for e in target.entries("t")] == [e.match for e in model.entries("t")]
    assert len(target.entries("t")) == 2
