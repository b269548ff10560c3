"""Jobs: what they hold never overlaps, their entries fit the switch program, deploying is all or nothing."""

from __future__ import annotations

import json
import random
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address

import pytest
from fake_switch import FakeSwitch, RunningFake, entity_key
from google.rpc import code_pb2

from catchment.checkout import ROOT
from catchment.controlplane.client import P4Info, SwitchClient, SwitchError, TableEntry
from catchment.controlplane.client.entries import to_message
from catchment.controlplane.deployment.fabric import flood_ports, forwarding_config, routes
from catchment.controlplane.deployment.ownership import holdings
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, deploy, plan_job, remove
from catchment.controlplane.jobs.allocation import JOB_ROWS, Share
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.jobs.generations import MAX_GENERATION, GenerationOrder
from catchment.controlplane.state.desired import write
from catchment.controlplane.state.faults import Direction, clear_loss, set_loss
from catchment.controlplane.topology import Link, PortRef, Topology, racks, star
from catchment.wire.generated import p4runtime_pb2
from catchment.wire.generated.constants import Mode, PacketType

PROGRAM = ROOT / "p4src" / "luwu.p4"
GOLDEN = ROOT / "p4src" / "p4info" / "luwu_64.p4info.txtpb"


def one_switch(workers: int = 4, slots: int = 1024) -> Topology:
    return star([*(f"w{i}" for i in range(workers)), "opt"], program=PROGRAM, slots=slots)


def two_racks() -> Topology:
    return racks([["a0", "a1"], ["b0", "b1", "b2"]], ["opt"], program=PROGRAM)


def luwu(topology: Topology, name: str = "job", workers: int = 4, **options: object) -> JobPlan:
    return plan_job("luwu", topology, name=name, workers=[f"w{i}" for i in range(workers)], root="opt", **options)  # type: ignore[arg-type]


# Allocation


def test_random_creation_and_removal_never_overlaps(rng: random.Random) -> None:
    topology = one_switch(workers=8, slots=512)
    alive: dict[str, JobPlan] = {}
    order, given = GenerationOrder(rng.getrandbits(62)), 1
    generations: set[int] = set()
    full = 0
    for number in range(5000):
        if number >= 300 and full:
            break
        shares = [s for job in alive.values() for stream in job.streams for s in stream.shares]
        used = [stream.gen for job in alive.values() for stream in job.streams]
        allocator = Allocator(topology, shares, next_generation=given, order=order, used_generations=used)
        if alive and rng.random() < 0.45:
            del alive[rng.choice(sorted(alive))]
            continue
        try:
            job = luwu(topology, f"j{number}", rng.randint(1, 8), slots=1 << rng.randint(0, 8), allocator=allocator)
        except JobError:
            full += 1
            continue
        new = {stream.gen for stream in job.streams}
        assert len(new) == 2
        assert not new & generations, "a generation is never used again"
        generations |= new
        given = allocator.next_generation
        alive[job.name] = job
        held = [s for j in alive.values() for stream in j.streams for s in stream.shares]
        cells = [slot for s in held for slot in range(s.base, s.base + s.slots)]
        assert len(set(cells)) == len(cells)
        assert all(0 <= cell < 512 for cell in cells)
        rows = [s.row for s in held]
        assert len(set(rows)) == len(rows)
        groups = [j.streams[0].shares[0].group for j in alive.values()]
        assert len(set(groups)) == len(groups)
    assert full, "the switch never filled up: this test tests too little"


def test_all_slots_can_be_used() -> None:
    allocator = Allocator(one_switch(slots=64))
    assert [allocator.share("s1", 16).base for _ in range(4)] == [0, 16, 32, 48]
    with pytest.raises(JobError, match="switch s1 has no 16 slots in a row: 64 of 64 are in use"):
        allocator.share("s1", 16)


def test_a_gap_is_found_again() -> None:
    held = [Share("s1", 0, 16, 0, 2), Share("s1", 32, 16, 1, 3)]
    allocator = Allocator(one_switch(slots=64), held)
    assert allocator.share("s1", 16).base == 16
    assert allocator.share("s1", 16).base == 48


def test_rows_run_out() -> None:
    allocator = Allocator(one_switch())
    for _ in range(JOB_ROWS):
        allocator.share("s1", 0)
    with pytest.raises(JobError, match="remove a job"):
        allocator.share("s1", 0)


def test_generations_wrap_past_those_in_use_and_run_out() -> None:
    order = GenerationOrder(5)
    taken = [order.at(1), order.at(2)]
    allocator = Allocator(one_switch(), next_generation=MAX_GENERATION, order=order, used_generations=taken)
    assert [allocator.generation() for _ in range(2)] == [order.at(MAX_GENERATION), order.at(3)]
    full = Allocator(one_switch(), used_generations=range(1, MAX_GENERATION + 1))
    with pytest.raises(JobError, match="every generation is in use"):
        full.generation()


# Plans


def test_a_plan_survives_json() -> None:
    for job in (luwu(one_switch()), plan_job("allreduce", two_racks(), name="x", workers=["a0", "b2"])):
        assert JobPlan.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_what_members_are_told() -> None:
    order = GenerationOrder(5)
    job = luwu(one_switch(), workers=3, slots=32, allocator=Allocator(one_switch(), next_generation=7, order=order))
    description = job.describe("w2")
    stream = {"workers": 3, "slots": 32, "base_seq": 0, "lanes": 64, "param_bytes": 1408}
    assert description == {
        "job": "job", "kind": "luwu", "host": "w2", "role": "worker", "wid": 2,
        "local": ["10.0.0.3", 51836], "switch": ["10.0.0.254", 51836], "switch_name": "s1",
        "gradients": {"gen": order.at(7), **stream}, "parameters": {"gen": order.at(8), **stream},
    }  # fmt: skip
    assert json.loads(json.dumps(description)) == description
    assert job.describe("opt")["role"] == "root"
    with pytest.raises(JobError, match="host w3 is not in job job; in it are: w0, w1, w2, opt"):
        job.describe("w3")


def test_jobs_on_the_same_hosts_get_their_own_ports() -> None:
    topology = one_switch()
    allocator = Allocator(topology)
    first, second = (luwu(topology, name, allocator=allocator) for name in ("a", "b"))
    assert first.describe("w0")["local"][1] != second.describe("w0")["local"][1]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"workers": []}, "0 workers; a job takes 1 to 64 .max_workers in wire/frame.toml."),
        ({"workers": [f"w{i}" for i in range(65)]}, "65 workers"),
        ({"workers": ["w0", "w0"]}, "once only"),
        ({"workers": ["w0", "opt"]}, "once only"),
        ({"slots": 48}, "power of two"),
        ({"slots": 0}, "power of two"),
        ({"slots": 2048}, "no 2048 slots in a row"),
        ({"lanes": 8}, "8 lanes, but switch s1 is built for 64"),
        ({"param_bytes": 1451}, "param_bytes 1451 is not between 1 and 1450"),
    ],
)
def test_impossible_jobs(options: dict[str, object], complaint: str) -> None:
    arguments = {"workers": ["w0", "w1"], **options}
    with pytest.raises(JobError, match=complaint):
        plan_job("luwu", one_switch(34), name="x", root="opt", **arguments)  # type: ignore[arg-type]


def test_frames_must_fit_the_mtu() -> None:
    topology = star(["w0", "opt"], program=PROGRAM, lanes=256, mtu=1000)
    with pytest.raises(JobError, match="256 lanes need an MTU of 1074, the topology has 1000"):
        luwu(topology, workers=1)


# Entries


def test_entries_fit_the_switch_program() -> None:
    """Every name and width against the program's own P4Info."""
    info = P4Info.load(GOLDEN)
    topology = two_racks()
    job = plan_job("luwu", topology, name="x", workers=["a0", "a1", "b0"], root="opt")
    entries = [e for config in switch_configs(job, topology) for e in config.entries]
    entries += [
        TableEntry("own_addresses", {"target": "10.0.0.254"}, "answer", {"mac": "02:00:00:00:fe:01"}),
        TableEntry("l2", {"dst": "02:00:00:00:fe:01"}, "forward", {"port": 1}),
        TableEntry("l2", {}, "flood", {"group": 1}, is_default=True),
        TableEntry("ingress_faults", {"port": 1, "type": "2&&&0xf"}, "maybe_drop", {"threshold": 1}, 10),
        TableEntry("egress_faults", {"port": 1, "type": "2&&&0xf"}, "maybe_drop", {"threshold": 1}, 10),
    ]
    for entry in entries:
        to_message(entry, info)
    assert info.has("counter", "drops")
    assert info.has("direct counter", "job_packets")


def test_a_tree_is_table_entries_alone() -> None:
    topology = two_racks()
    job = plan_job("luwu", topology, name="x", workers=["a0", "b2", "a1"], root="opt", slots=32)
    spine, *leaves = switch_configs(job, topology)
    assert spine.switch == "sp"
    assert [leaf.switch for leaf in leaves] == ["r1", "r2"]
    up = job.stream("gradients").gen

    def row(entries: tuple[TableEntry, ...], table: str, gen: int, port: int) -> TableEntry:
        (found,) = [e for e in entries if e.table == table and e.match == {"gen": gen, "port": port}]
        return found

    top = row(spine.entries, "jobs", up, 1)
    assert (top.action, top.params["mode"], top.params["full"], top.params["up_port"]) == ("worker", Mode.REDUCE, 3, 3)
    leaf = row(leaves[0].entries, "jobs", up, 2)
    assert (leaf.params["mode"], leaf.params["own"], leaf.params["full"]) == (Mode.LEAF, 2, 3)
    assert (leaf.params["up_port"], leaf.params["up_wid"]) == (3, 0)
    assert row(leaves[0].entries, "jobs", up, 3).action == "root"
    assert row(leaves[1].entries, "jobs", up, 3).params["mode"] == Mode.LEAF
    # Racks are indexed by their port of arrival at the spine.
    assert {row(spine.entries, "jobs", up, p).params["own"] for p in (1, 2)} == {1, 2}
    # A leaf sends to its parent's address, and the spine to its leaves'.
    assert row(leaves[0].entries, "receivers", up, 3).params["dst_ip"] == "10.0.0.254"
    assert row(spine.entries, "receivers", up, 2).params["dst_ip"] == "10.0.2.254"
    assert row(spine.entries, "receivers", up, 3).params["dst_ip"] == "10.0.0.1"
    # A leaf takes vectors on the parameters' stream too: they must not fall into somebody's slot.
    down = job.stream("parameters")
    assert all(s.slots == 1 and s.base >= 32 for s in down.shares if s.switch != "sp")


def test_the_top_of_an_allreduce_is_in_the_middle() -> None:
    topology = two_racks()
    job = plan_job("allreduce", topology, name="x", workers=["a0", "b0"])
    assert [b.switch for b in job.tree] == ["sp", "r1", "r2"]
    local = plan_job("allreduce", topology, name="x", workers=["a0", "a1"])
    assert [b.switch for b in local.tree] == ["r1"]


def test_the_top_of_an_allreduce_reaches_every_worker() -> None:
    """A switch with no link is no top, whatever its name sorts before."""
    connected = two_racks()
    apart = replace(connected.switches["sp"], name="apart", ip=IPv4Address("10.9.9.254"), mac="02:00:00:09:fe:09")
    topology = replace(connected, switches={"apart": apart, **connected.switches})
    job = plan_job("allreduce", topology, name="x", workers=["a0", "b0"])
    assert [b.switch for b in job.tree] == ["sp", "r1", "r2"]


def test_a_worker_out_of_reach_is_named() -> None:
    connected = two_racks()
    topology = Topology("cut", connected.switches, connected.hosts, connected.links[:1])
    with pytest.raises(JobError, match=r"no path between b0 \(on r2\) and switch sp"):
        plan_job("luwu", topology, name="x", workers=["a0", "b0"], root="opt")


# Forwarding


def test_routes_and_flooding_follow_a_tree_in_a_ring_of_switches() -> None:
    tree = two_racks()
    ring = Topology("ring", tree.switches, tree.hosts, (*tree.links, Link(PortRef("r1", 9), PortRef("r2", 9))))
    edges = [(s, p) for s in ring.switches for p in flood_ports(ring, s) if isinstance(ring.ports(s)[p], PortRef)]
    assert len(edges) == 4, "three switches are joined by two links, each with two ends"
    for switch in ring.switches:
        ways = routes(ring, switch)
        assert set(ways) == set(ring.hosts)
        for host in ring.hosts.values():
            here, hops = switch, 0
            while host.link.switch != here:
                peer = ring.ports(here)[routes(ring, here)[host.name]]
                assert isinstance(peer, PortRef)
                here, hops = peer.switch, hops + 1
                assert hops < 5
            assert routes(ring, here)[host.name] == host.link.port


# Deploying


def test_deploy_writes_and_remove_deletes_everything(client: SwitchClient) -> None:
    topology = one_switch()
    allocator = Allocator(topology)
    first, second = (luwu(topology, name, allocator=allocator) for name in ("a", "b"))
    clients = {"s1": client}
    deploy(first, topology, clients)
    alone = (client.read(), client.groups())
    deploy(second, topology, clients)
    assert len(client.read("jobs")) == 20
    assert len(client.groups()) == 2
    remove(second, clients)
    assert (client.read(), client.groups()) == alone
    remove(first, clients)
    assert (client.read(), client.groups()) == ([], {})
    remove(first, clients)


def test_a_refused_job_leaves_nothing_behind(client: SwitchClient, fake: RunningFake) -> None:
    topology = one_switch()
    job = luwu(topology)
    bad = switch_configs(job, topology)[0].entries[-1]
    key = entity_key(p4runtime_pb2.Entity(table_entry=to_message(bad, client.p4info)))
    fake.switch.refuse[key] = (code_pb2.RESOURCE_EXHAUSTED, "table full")
    with pytest.raises(SwitchError, match="RESOURCE_EXHAUSTED: table full"):
        deploy(job, topology, {"s1": client})
    assert client.read("jobs") == []
    assert client.read("receivers") == []
    assert client.groups() == {}


def test_a_job_that_one_switch_refuses_is_on_no_switch() -> None:
    """Every switch in turn refuses it; those that were written before have nothing of it."""
    topology = two_racks()
    job = plan_job("allreduce", topology, name="job", workers=["a0", "b2"])
    with ExitStack() as exits:
        fakes = {
            name: exits.enter_context(
                RunningFake(FakeSwitch(device_id=switch.device_id, p4info=P4Info.load(GOLDEN).message))
            )
            for name, switch in topology.switches.items()
        }
        clients = {
            name: exits.enter_context(
                SwitchClient.connect(fake.address, fake.switch.device_id, name=name, timeout=60.0)
            )
            for name, fake in fakes.items()
        }
        for name, fake in fakes.items():
            fake.switch.refuse_new = (code_pb2.RESOURCE_EXHAUSTED, "table full")
            with pytest.raises(SwitchError, match=f"(?s)switch {name}.*RESOURCE_EXHAUSTED: table full"):
                deploy(job, topology, clients)
            assert {n: (c.read(), c.groups()) for n, c in clients.items()} == dict.fromkeys(clients, ([], {}))
            fake.switch.refuse_new = None
        deploy(job, topology, clients)
        assert all(client.read("jobs") for client in clients.values())


def test_deploying_twice_is_refused_and_harms_nothing(client: SwitchClient) -> None:
    topology = one_switch()
    job = luwu(topology)
    client.set_group(2, [9])
    with pytest.raises(JobError, match="already has multicast group 2"):
        deploy(job, topology, {"s1": client})
    assert client.groups() == {2: [9]}
    client.delete_groups([2])
    deploy(job, topology, {"s1": client})
    before = (client.read(), client.groups())
    with pytest.raises(JobError, match=r"s1.*already has jobs\[gen=\d+ port=1\]"):
        deploy(job, topology, {"s1": client})
    assert (client.read(), client.groups()) == before


def test_a_job_takes_the_slots_of_one_that_is_gone_beside_another(client: SwitchClient) -> None:
    """The entries of a stream that adds nothing up hold no slots, not the first one either."""
    topology = one_switch()
    allocator = Allocator(topology)
    first, second = (luwu(topology, name, allocator=allocator) for name in ("a", "b"))
    for job in (first, second):
        deploy(job, topology, {"s1": client})
    remove(first, {"s1": client})
    third = luwu(topology, "c", allocator=Allocator(topology, [s for one in second.streams for s in one.shares]))
    assert 0 in {share.base for stream in third.streams for share in stream.shares if share.slots}
    deploy(third, topology, {"s1": client})
    held = {(one.base, one.slots) for one in holdings(client.read("jobs")) if one.slots}
    assert held == {(s.base, s.slots) for job in (second, third) for one in job.streams for s in one.shares if s.slots}


def test_entries_of_a_job_that_fits_no_more_are_refused() -> None:
    job = luwu(one_switch())
    with pytest.raises(
        JobError, match="job job has a member at port 5 of s1, where the topology no longer has anybody"
    ):
        switch_configs(job, one_switch(workers=3))
    with pytest.raises(JobError, match="job job runs over switch s1, which is not in the topology any more"):
        switch_configs(job, two_racks())


def test_a_missing_connection_is_named() -> None:
    with pytest.raises(JobError, match="job job needs switch s1"):
        deploy(luwu(one_switch()), one_switch(), {})


def test_forwarding_entries(client: SwitchClient) -> None:
    write(forwarding_config(one_switch(2), "s1"), client)
    assert {e.match["dst"]: e.params["port"] for e in client.read("l2")} == {
        "02:00:00:00:00:01": 1,
        "02:00:00:00:00:02": 2,
        "02:00:00:00:00:03": 3,
    }
    assert client.groups() == {1: [1, 2, 3]}
    (own,) = client.read("own_addresses")
    assert own.params == {"mac": "02:00:00:00:fe:01"}


# Faults


def test_loss_is_set_replaced_and_cleared(client: SwitchClient) -> None:
    set_loss(client, [1, 2], 0.25)
    assert len(client.read("ingress_faults")) == 2 * len(PacketType)
    assert {e.params["threshold"] for e in client.read("egress_faults")} == {1 << 30}
    set_loss(client, [1], 1.0, types=[PacketType.PA], directions=[Direction.INGRESS])
    changed = [e for e in client.read("ingress_faults") if e.params["threshold"] != 1 << 30]
    assert [(e.match, e.params) for e in changed] == [({"port": 1, "type": "1&&&0xf"}, {"threshold": (1 << 32) - 1})]
    set_loss(client, [2], 0.0)
    assert {e.match["port"] for e in client.read("ingress_faults")} == {1}
    clear_loss(client)
    assert client.read("ingress_faults") + client.read("egress_faults") == []


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_a_probability_out_of_range(client: SwitchClient, probability: float) -> None:
    with pytest.raises(SwitchError, match="between 0 and 1"):
        set_loss(client, [1], probability)


def test_a_switch_takes_as_many_workers_as_its_program_is_built_for() -> None:
    """What counts is who sends to the switch: a rack below it is one, whatever number of workers it has."""
    topology = one_switch(4)
    topology = replace(topology, switches={n: replace(s, workers=3) for n, s in topology.switches.items()})
    assert luwu(topology, workers=3).workers == ("w0", "w1", "w2")
    with pytest.raises(
        JobError, match=r"s1 is built for 3 workers and would have 4; give it `workers: 4` in the topol"
    ):
        luwu(topology, workers=4)
    tree = two_racks()
    few = replace(tree, switches={name: replace(switch, workers=3) for name, switch in tree.switches.items()})
    job = plan_job("allreduce", few, name="five", workers=["a0", "a1", "b0", "b1", "b2"])
    assert max(len(branch.members) for branch in job.tree) == 3
