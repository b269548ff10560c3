"""What a switch should hold gets there, and nothing else stays: repaired, put in place of another, taken off."""

from __future__ import annotations

import random
from dataclasses import replace as changed

import pytest

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.controlplane.deployment.fabric import forwarding_config
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.state.desired import (
    FIRST_HAND_GROUP,
    SwitchConfig,
    reconcile,
    replace,
    take_off,
    write,
    write_new,
)
from catchment.controlplane.topology import Topology, racks, star

TOPOLOGY = star(["w0", "w1", "w2", "opt"], program=ROOT / "p4src" / "luwu.p4", slots=64)


def part(allocator: Allocator | None = None, topology: Topology = TOPOLOGY) -> tuple[JobPlan, SwitchConfig]:
    """A job of three workers, and what its one switch should hold."""
    job = plan_job("luwu", topology, name="x", workers=["w0", "w1", "w2"], root="opt", slots=8, allocator=allocator)
    (config,) = switch_configs(job, topology)
    return job, config


def held(client: SwitchClient) -> dict[bytes, bytes]:
    """Key -> key, action and parameters of every entry of a job."""
    return {client.key(entry): client.value(entry) for name in ("jobs", "receivers") for entry in client.read(name)}


def wanted(client: SwitchClient, config: SwitchConfig) -> dict[bytes, bytes]:
    return {client.key(entry): client.value(entry) for entry in config.entries}


def test_every_kind_of_drift_is_repaired(client: SwitchClient, rng: random.Random) -> None:
    _, config = part()
    write(config, client)
    assert not reconcile(client, [config])
    entries = list(config.entries)
    rng.shuffle(entries)
    gone, wrong = entries[0], next(entry for entry in entries[1:] if entry.table == "receivers")
    client.delete(gone)
    client.modify(changed(wrong, params={**wrong.params, "dst_udp": 1}))
    foreign = TableEntry(
        "jobs", {"gen": 0xABC, "port": 3}, "root", {"mode": 1, "job": 9, "group": 9, "src_ip": 1, "src_udp": 1}
    )
    client.insert(foreign)
    (group, ports) = next(iter(config.groups.items()))
    client.set_groups({group: ports[:1], 99: [1, 2], FIRST_HAND_GROUP: [3]})
    differences = reconcile(client, [config])
    assert (differences.written, differences.deleted, differences.groups) == (2, 1, 2)
    assert held(client) == wanted(client, config)
    assert client.groups() == {**config.groups, FIRST_HAND_GROUP: [3]}, "people's own groups stay"


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_value_is_repaired_in_either_direction(client: SwitchClient, shift: int) -> None:
    _, config = part()
    write(config, client)
    wrong = next(entry for entry in config.entries if entry.table == "receivers")
    client.modify(changed(wrong, params={**wrong.params, "dst_udp": int(wrong.params["dst_udp"]) + shift}))
    assert reconcile(client, [config]).written == 1
    assert held(client) == wanted(client, config)


def test_what_is_repaired_is_counted_by_kind(client: SwitchClient) -> None:
    _, config = part()
    forwarding = forwarding_config(TOPOLOGY, "s1")
    parts = [config, forwarding]
    wanted_entries = sum(len(one.entries) for one in parts)
    defaults = sum(entry.is_default for one in parts for entry in one.entries)
    assert defaults
    assert reconcile(client, parts).written == wanted_entries, "an empty switch"
    assert not reconcile(client, parts)
    gone = [entry for entry in config.entries if entry.table == "jobs"]
    client.delete(*gone)
    default = next(entry for entry in forwarding.entries if entry.is_default)
    client.modify(changed(default, action="", params={}))
    assert reconcile(client, parts).written == len(gone) + 1


def test_one_part_takes_the_place_of_another(client: SwitchClient) -> None:
    allocator = Allocator(TOPOLOGY)
    job, old = part(allocator)
    write(old, client)
    renewed = job.renewed(allocator)
    assert not {stream.gen for stream in renewed.streams} & {stream.gen for stream in job.streams}
    (new,) = switch_configs(renewed, TOPOLOGY)
    # The second part has another multicast group, too.
    group = next(iter(new.groups))
    new = changed(new, groups={group + 7: new.groups[group]})
    replace(old, new, client)
    assert held(client) == wanted(client, new)
    assert client.groups() == new.groups
    take_off(new, client)
    assert held(client) == {}
    assert client.groups() == {}


def test_a_new_part_that_meets_another_s_leaves_the_other_alone(client: SwitchClient) -> None:
    _, config = part()
    write(changed(config, entries=config.entries[-1:], groups={}), client)
    others = held(client)
    with pytest.raises(SwitchError):
        write_new(config, client)
    assert (held(client), client.groups()) == (others, {})
    take_off(config, client)
    write(changed(config, entries=()), client)
    with pytest.raises(SwitchError):
        write_new(config, client)
    assert (held(client), client.groups()) == ({}, config.groups)


def test_the_highest_switch_of_a_tree_has_no_port_up() -> None:
    topology = racks([["a0", "a1"], ["b0"]], program=ROOT / "p4src" / "luwu.p4")
    job = plan_job("allreduce", topology, name="x", workers=["a0", "a1", "b0"], slots=8)
    top, *leaves = ([e for e in config.entries if e.action == "worker"] for config in switch_configs(job, topology))
    assert {entry.params["up_port"] for entry in top} == {0}
    assert all(entry.params["up_port"] for leaf in leaves for entry in leaf)


def test_every_rack_is_a_worker_of_its_own_at_the_spine() -> None:
    topology = racks([["a0", "a1"], ["b0"], ["c0"]], ["opt"], program=ROOT / "p4src" / "luwu.p4")
    job = plan_job("luwu", topology, name="x", workers=["a0", "b0", "c0", "a1"], root="opt", slots=8)
    top, *leaves = job.tree
    assert {leaf.switch: leaf.up_wid for leaf in leaves} == {name: wid for wid, (_, name) in enumerate(top.members)}
    assert sorted(leaf.up_wid for leaf in leaves) == [0, 1, 2]


def test_receivers_are_told_their_own_job_s_port() -> None:
    allocator = Allocator(TOPOLOGY)
    (first, _), (second, config) = part(allocator), part(allocator)
    assert first.ports["w0"] != second.ports["w0"]
    written = {entry.match["port"]: entry.params["dst_udp"] for entry in config.entries if entry.table == "receivers"}
    ports = {TOPOLOGY.host(host).link.port: port for host, port in second.ports.items()}
    assert written == ports


@pytest.mark.parametrize("slots", [128, 1024])
def test_more_slots_than_a_switch_has_are_refused(slots: int) -> None:
    with pytest.raises(JobError, match=f"no {slots} slots in a row: 0 of 64 are in use"):
        Allocator(TOPOLOGY).share("s1", slots)
