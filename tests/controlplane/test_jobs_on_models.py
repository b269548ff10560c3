"""The control plane's entries do what they are for: jobs and trees on the golden switch model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from model_fabric import ModelFabric
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import ARP, Ether

from catchment.controlplane.jobs import Allocator, JobPlan, plan_job
from catchment.controlplane.topology import Topology, racks, star
from catchment.sim.lab.traffic.attacker import Attack, malformed, spoofed, wrong_direction
from catchment.sim.lab.traffic.frames import Sender
from catchment.wire.generated.constants import UDP_PORT, DropReason, Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment

PROGRAM = Path("luwu.p4")
LANES = 8


def sender(topology: Topology, job: JobPlan, host: str) -> Sender:
    here = topology.host(host)
    return Sender.of(job.describe(host), here.mac, topology.switch(here.link.switch).mac)


def ours(frame: bytes) -> Catchment:
    return Catchment(bytes(Ether(frame)[UDP].payload))


def one_switch() -> Topology:
    return star(["w0", "w1", "w2", "opt", "out"], program=PROGRAM, lanes=LANES)


def tree() -> Topology:
    return racks([["w0", "w1"], ["w2", "out"]], ["opt"], program=PROGRAM, lanes=LANES)


def tree_with_the_root_in_a_rack() -> Topology:
    return racks([["w0", "opt"], ["w1", "w2"], ["out"]], program=PROGRAM, lanes=LANES)


SHAPES = [one_switch, tree, tree_with_the_root_in_a_rack]


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_go_up_and_parameters_come_down(shape, rng: random.Random) -> None:  # type: ignore[no-untyped-def]
    topology = shape()
    allocator = Allocator(topology)
    fabric = ModelFabric(topology)
    jobs = [
        plan_job("luwu", topology, name=n, workers=w, root="opt", slots=4, allocator=allocator)
        for n, w in (("a", ["w0", "w1", "w2"]), ("b", ["w2", "w0"]))
    ]
    for job in jobs:
        fabric.deploy(job)
    work = [(job, seq, w) for job in jobs for seq in range(4) for w in job.workers]
    rng.shuffle(work)
    vectors = {key: [rng.randrange(-(1 << 28), 1 << 28) for _ in range(LANES)] for key in range(len(work))}
    sums = {}
    for number, (job, seq, worker) in enumerate(work):
        gen = job.stream("gradients").gen
        frame = sender(topology, job, worker).vector(vectors[number], gen=gen, seq=seq)
        for host, data in fabric.send(worker, bytes(frame)):
            assert host == "opt"
            assert (Ether(data)[IP].dst, Ether(data)[UDP].dport) == tuple(job.describe("opt")["local"])
            assert ours(data).type == PacketType.FA
            sums[job.name, ours(data).seq] = list(ours(data).payload.values)
    for job in jobs:
        for seq in range(4):
            members = [vectors[n] for n, (j, s, _) in enumerate(work) if (j, s) == (job, seq)]
            assert sums[job.name, seq] == [sum(lane) for lane in zip(*members, strict=True)]

    for job in jobs:
        root = sender(topology, job, "opt")
        data = rng.randbytes(100)
        frame = root.parameters(data, gen=job.stream("parameters").gen, seq=3)
        arrived = fabric.send("opt", bytes(frame))
        assert sorted(host for host, _ in arrived) == sorted(job.workers)
        for host, out in arrived:
            assert (Ether(out)[IP].dst, Ether(out)[UDP].dport) == tuple(job.describe(host)["local"])
            assert bytes(ours(out).payload) == data
        # The root's credit for the gradients reaches every worker.
        beat = fabric.send("opt", bytes(root.heartbeat(5, 9, gen=job.stream("gradients").gen)))
        assert sorted(host for host, _ in beat) == sorted(job.workers)
        assert all((ours(out).type, ours(out).credit) == (PacketType.MH, 9) for _, out in beat)
        # The workers' credit for the parameters reaches the root as a minimum.
        heard = []
        for wid, worker in enumerate(job.workers):
            beat = sender(topology, job, worker).heartbeat(3 + wid, 20 - wid, gen=job.stream("parameters").gen)
            heard += fabric.send(worker, bytes(beat))
        assert {host for host, _ in heard} == {"opt"}
        assert (ours(heard[-1][1]).ack, ours(heard[-1][1]).credit) == (3, 21 - len(job.workers))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_allreduce_tells_everyone(shape, rng: random.Random) -> None:  # type: ignore[no-untyped-def]
    topology = shape()
    fabric = ModelFabric(topology)
    job = plan_job("allreduce", topology, name="a", workers=["w2", "w0", "w1"], slots=4)
    fabric.deploy(job)
    gen = job.stream("sums").gen
    vectors = {w: [rng.randrange(-(1 << 28), 1 << 28) for _ in range(LANES)] for w in job.workers}
    arrived = []
    for worker, vector in vectors.items():
        frame = sender(topology, job, worker).vector(vector, gen=gen, seq=1, flags=int(Flag.ACKV), ack=1, credit=5)
        arrived += fabric.send(worker, bytes(frame))
    full = [(host, ours(out)) for host, out in arrived if ours(out).type == PacketType.FA]
    assert sorted(host for host, _ in full) == ["w0", "w1", "w2"]
    for _, header in full:
        assert list(header.payload.values) == [sum(lane) for lane in zip(*vectors.values(), strict=True)]


@pytest.mark.parametrize("shape", SHAPES)
def test_plain_traffic_finds_its_way(shape) -> None:  # type: ignore[no-untyped-def]
    topology = shape()
    fabric = ModelFabric(topology)
    hosts = list(topology.hosts.values())
    for a in hosts:
        for b in hosts:
            if a != b:
                frame = bytes(
                    Ether(src=a.mac, dst=b.mac) / IP(src=str(a.ip.ip), dst=str(b.ip.ip)) / UDP(dport=9) / b"x"
                )
                assert fabric.send(a.name, frame) == [(b.name, frame)]
        everyone = fabric.send(a.name, bytes(Ether(src=a.mac, dst="ff:ff:ff:ff:ff:ff") / b"hello, all of you"))
        assert sorted(host for host, _ in everyone) == sorted(h.name for h in hosts if h != a)
        switch = topology.switch(a.link.switch)
        question = Ether(src=a.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op=1, hwsrc=a.mac, psrc=str(a.ip.ip), pdst=str(switch.ip)
        )
        ((host, answer),) = fabric.send(a.name, bytes(question))
        assert (host, Ether(answer)[ARP].hwsrc) == (a.name, switch.mac)


def attack_all(fabric: ModelFabric, host: str, attacks: list[Attack]) -> None:
    model = fabric.switches[fabric.topology.host(host).link.switch]
    for attack in attacks:
        before = model.drops.copy()
        assert fabric.send(host, attack.frame) == [], attack.name
        model.drops.subtract(before)
        counted = {reason: n for reason, n in model.drops.items() if n}
        model.drops.update(before)
        assert counted == {attack.reason: 1}, attack.name


def test_attacks_die_of_what_they_say(rng: random.Random) -> None:
    topology = one_switch()
    fabric = ModelFabric(topology)
    job = plan_job("luwu", topology, name="a", workers=["w0", "w1"], root="opt", slots=4)
    fabric.deploy(job)
    description = job.describe("w0")
    outsider = topology.host("out")
    attacker = Sender(outsider.mac, str(outsider.ip.ip), UDP_PORT, topology.switch("s1").mac, description["switch"][0])
    attacks = [*malformed(attacker, description["gradients"]["gen"], LANES, rng), *spoofed(attacker, description, rng)]
    reasons = {attack.reason for attack in attacks}
    assert reasons >= {
        DropReason.PARSE_ERROR, DropReason.BAD_IPV4, DropReason.BAD_LENGTH, DropReason.BAD_VERSION, DropReason.BAD_TYPE,
        DropReason.BAD_FLAGS, DropReason.BAD_LANES, DropReason.UNKNOWN_JOB,
    }  # fmt: skip
    attack_all(fabric, "out", attacks)
    member = sender(topology, job, "w1")
    attack_all(
        fabric,
        "w1",
        [*malformed(member, description["gradients"]["gen"], LANES, rng), *wrong_direction(member, description, rng)],
    )
    assert all(not slot.contributions for slot in fabric.switches["s1"].slots.slots)
