"""Jobs with packed lanes: their entries on every switch, what members are told, and which of them are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_switch import RunningFake
from model_fabric import ModelFabric
from scapy.layers.inet import UDP
from scapy.layers.l2 import Ether

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller import messages
from catchment.controlplane.jobs import Allocator, JobError, JobPlan, JobRequest, deploy, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology, racks, star
from catchment.host import Stream
from catchment.sim.lab.traffic.frames import Sender
from catchment.wire.generated.constants import Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment

PROGRAM = Path("luwu.p4")
LANES = 8


def one_switch() -> Topology:
    return star(["w0", "w1", "opt"], program=PROGRAM, lanes=LANES)


def tree() -> Topology:
    return racks([["w0", "w1"], ["w2"]], ["opt"], program=PROGRAM, lanes=LANES)


def test_every_switch_of_a_tree_has_the_streams_entry() -> None:
    """Vectors of gradients only: parameters are bytes."""
    topology = tree()
    job = plan_job("luwu", topology, name="job", workers=["w0", "w1", "w2"], root="opt", packed=True)
    gen = job.stream("gradients").gen
    for config in switch_configs(job, topology):
        entries = [(e.match, e.action, e.metadata) for e in config.entries if e.table == "packed"]
        assert entries == [({"gen": gen}, "halves", job.owner.encode())]
    plain = plan_job("luwu", topology, name="plain", workers=["w0", "w1", "w2"], root="opt")
    assert not any(e.table == "packed" for config in switch_configs(plain, topology) for e in config.entries)


def test_halves_are_added_through_a_tree() -> None:
    """No carry between halves, on the leaf and at the top; the flag stays on the sum."""
    topology = tree()
    job = plan_job("luwu", topology, name="job", workers=["w0", "w1", "w2"], root="opt", slots=4, packed=True)
    fabric = ModelFabric(topology)
    fabric.deploy(job)
    gen, arrived = job.stream("gradients").gen, []
    for worker, word in (("w0", 0x0001FFFF), ("w1", 0x0001FFFF), ("w2", 0x00010003)):
        here = topology.host(worker)
        sender = Sender.of(job.describe(worker), here.mac, topology.switch(here.link.switch).mac)
        frame = sender.vector([word] * LANES, gen=gen, seq=0)
        frame[Catchment].flags = int(frame[Catchment].flags) | Flag.PACKED
        arrived += fabric.send(worker, bytes(frame))
    [(host, data)] = arrived
    heard = Catchment(bytes(Ether(data)[UDP].payload))
    assert (host, heard.type, bool(int(heard.flags) & Flag.PACKED)) == ("opt", PacketType.FA, True)
    assert {value % (1 << 32) for value in heard.payload.values} == {0x00030001}


@pytest.mark.parametrize("odd", ["w0", "w1", "w2"])
def test_other_lanes_are_told_through_a_tree(odd: str) -> None:
    """Whoever has them, beside a neighbour in its rack or in another one."""
    topology = tree()
    job = plan_job("luwu", topology, name="job", workers=["w0", "w1", "w2"], root="opt", slots=4, packed=True)
    fabric = ModelFabric(topology)
    fabric.deploy(job)
    gen, arrived = job.stream("gradients").gen, []
    for word, worker in enumerate(("w0", "w1", "w2"), start=1):
        here = topology.host(worker)
        sender = Sender.of(job.describe(worker), here.mac, topology.switch(here.link.switch).mac)
        frame = sender.vector([word] * LANES, gen=gen, seq=0)
        frame[Catchment].flags = int(frame[Catchment].flags) | (Flag.PACKED if worker != odd else 0)
        arrived += fabric.send(worker, bytes(frame))
    [(_, data)] = arrived
    heard = Catchment(bytes(Ether(data)[UDP].payload))
    assert int(heard.flags) & (Flag.PACKED | Flag.MIXED) == Flag.PACKED | Flag.MIXED


@pytest.mark.parametrize(("kind", "stream"), [("luwu", "gradients"), ("allreduce", "sums")])
def test_members_are_told(kind: str, stream: str) -> None:
    request = JobRequest("job", kind, ["w0", "w1"], "opt" if kind == "luwu" else None, packed=True)
    group = request.plan(one_switch(), Allocator(one_switch()))
    job = group.first
    for host in job.ports:
        description = job.describe(host)
        assert Stream(**description[stream]).packed
        assert messages.described(messages.description(group, host)) == description
    if kind == "luwu":
        assert not Stream(**job.describe("w0")["parameters"]).packed


def test_a_stored_job_keeps_its_lanes_and_an_older_one_has_none() -> None:
    job = plan_job("allreduce", one_switch(), name="job", workers=["w0", "w1"], packed=True)
    assert JobPlan.from_json(job.to_json()) == job
    assert job.packed
    older = job.to_json()
    for stream in older["streams"]:
        del stream["packed"]
    assert not JobPlan.from_json(older).packed


def test_renewed_jobs_keep_their_lanes() -> None:
    allocator = Allocator(one_switch())
    job = plan_job("allreduce", one_switch(), name="job", workers=["w0", "w1"], packed=True, allocator=allocator)
    assert job.renewed(allocator).packed


def test_a_kind_without_packed_lanes_is_refused() -> None:
    topology = star(["w0", "w1"], program=Path("p4sgd.p4"), lanes=LANES)
    with pytest.raises(JobError, match="jobs of kind slots have 32-bit lanes; packed lanes are for: allreduce, luwu"):
        JobRequest("job", "slots", ["w0", "w1"], packed=True).plan(topology, Allocator(topology))


def test_a_program_without_packed_lanes_is_named(client: SwitchClient, fake: RunningFake) -> None:
    """The program of the fake is older than packed lanes; nothing is written to it."""
    job = plan_job("luwu", one_switch(), name="job", workers=["w0", "w1"], root="opt", packed=True)
    with pytest.raises(JobError, match=r"job job has packed lanes, and the program on .* has no table 'packed'; start"):
        deploy(job, one_switch(), {"s1": client})
    assert (client.read(), client.groups()) == ([], {})
    assert fake.switch.entities == {}
