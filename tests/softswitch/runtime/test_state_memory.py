"""All that a frame reaches lies in one memory: registers, counters, meters, tables with their rows, replicas."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch

SERVER = Path(__file__).parents[1] / "server"


@pytest.fixture(scope="module")
def kinds() -> Switch:
    """A table of every match kind."""
    return Switch(build(SERVER / "kinds.p4"), seed=1)


@pytest.fixture(scope="module")
def extras() -> Switch:
    """Profiles, selectors, meters and value sets."""
    return Switch(build(SERVER / "extras.p4"), seed=1)


def test_nothing_leads_out_of_a_switch_without_entries(kinds: Switch, extras: Switch) -> None:
    assert kinds.dataplane.strays() == []
    assert extras.dataplane.strays() == []


def test_no_entry_of_any_kind_leads_out(kinds: Switch, rng: random.Random) -> None:
    keys = rng.sample(range(1, 1 << 16), 200)
    for key in keys:
        value = rng.randrange(1 << 16)
        kinds.insert("exact_t", {"hdr.ethernet.dst": key, "standard_metadata.ingress_port": 1}, "forward", port=2)
        kinds.insert("lpm_t", {"hdr.probe.address": (key << 16, 16)}, "set_lpm", value=value)
        kinds.insert(
            "ternary_t",
            {"hdr.probe.kind": (key & 0xFF, 0xFF), "hdr.probe.number": key},
            "set_ternary",
            priority=1,
            value=value,
        )
        kinds.insert("range_t", {"hdr.probe.number": (0, key)}, "set_range", priority=key, value=value)
        kinds.insert("optional_t", {"hdr.probe.number": key}, "set_optional", priority=1, value=value)
    kinds.set_default("keyless_t", "set_default", value=5)
    kinds.multicast(3, [(2, 1), (3, 2)])
    kinds.multicast(3, [(2, 1), (3, 2), (4, 3)])
    kinds.clone_session(7, [5])
    assert kinds.dataplane.strays() == []
    for key in keys[::2]:
        kinds.remove("exact_t", {"hdr.ethernet.dst": key, "standard_metadata.ingress_port": 1})
        kinds.remove("lpm_t", {"hdr.probe.address": (key << 16, 16)})
        kinds.modify("range_t", {"hdr.probe.number": (0, key)}, "NoAction", priority=key)
    kinds.remove_multicast(3)
    assert kinds.dataplane.strays() == []


def test_no_profile_meter_or_value_set_leads_out(extras: Switch) -> None:
    extras.insert_member("members", 1, "set_member", value=17)
    extras.insert("member_t", {"hdr.probe.flow": 1}, ("member", 1))
    for member in (1, 2, 3):
        extras.insert_member("groups", member, "set_group", value=member)
    extras.insert_group("groups", 9, [(1, 1), (2, 2), (3, 1)])
    extras.insert("group_t", {"hdr.probe.flow": 1}, ("group", 9))
    extras.insert("metered_t", {"hdr.probe.flow": 1}, "color_it")
    extras.write_meter("flow_meter", 1, cir=1, cburst=1, pir=2, pburst=2)
    extras.write_value_set("probe_types", [[0x1234], [0x4321]])
    assert extras.dataplane.strays() == []


def test_a_program_gives_its_memory_back(kinds: Switch) -> None:
    program = build(SERVER / "kinds.p4")
    switch = Switch(program, seed=1)
    used = switch.dataplane.state_bytes()
    for address in range(500):
        switch.insert("lpm_t", {"hdr.probe.address": (address, 32)}, "set_lpm", value=1)
        switch.multicast(address + 1, [1, 2, 3])
    assert switch.dataplane.state_bytes() > used
    switch.dataplane.load(str(program.shared_object))
    assert switch.dataplane.state_bytes() == used
    assert switch.read_registers("cells") == [0] * 64


def test_registers_are_zero_again_in_memory_that_was_used_before() -> None:
    program = build(SERVER / "kinds.p4")
    switch = Switch(program, seed=1)
    for _ in range(4):  # programs take turns in two places
        switch.write_register("cells", None, 0xFFFF_FFFF)
        switch.write_counter("by_port", None, 5, 6)
        switch.dataplane.load(str(program.shared_object))
        assert switch.read_registers("cells") == [0] * 64
        assert switch.read_counter("by_port", 3) == (0, 0)
