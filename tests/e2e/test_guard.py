"""What a host says of a switch's address, or to a switch that is not its own, reaches nobody."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from lab import Lab, all_exact
from test_slots import slots_job
from test_sums import luwu, some_sizes

from catchment.controlplane.diagnosis.doctor import examine
from catchment.controlplane.jobs import JobPlan
from catchment.sim.lab.traffic.attack_kind import AttackKind

POISON = """
import sys
from scapy.layers.l2 import ARP, Ether
from catchment.sim.lab.traffic.raw_port import RawPort
switch, own, victims, count = sys.argv[1], sys.argv[2], sys.argv[3].split(","), int(sys.argv[4])
sent = 0
with RawPort() as port:
    for _ in range(count):
        for victim in victims:
            address, mac = victim.split("=")
            for operation in (1, 2):
                for target_mac in (mac, "ff:ff:ff:ff:ff:ff"):
                    claim = ARP(op=operation, hwsrc=port.mac, psrc=switch, hwdst=mac, pdst=address)
                    port.send(bytes(Ether(src=port.mac, dst=target_mac, type=0x0806) / claim))
                    sent += 1
print(sent)
"""
INTRUDE = """
import json, random, sys
from pathlib import Path
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.wire.generated.constants import Flag, PacketType
description, own, parent, parent_mac, seed = json.loads(Path(sys.argv[1]).read_text()), *sys.argv[2:5], int(sys.argv[5])
rng = random.Random(seed)
sent = 0
with RawPort() as port:
    sender = Sender(port.mac, own, 51836, parent_mac, parent)
    for name in ("gradients", "parameters"):
        stream = description[name]
        for seq in range(200):
            values = [rng.randrange(1 << 31) for _ in range(stream["lanes"])]
            for frame in (
                sender.vector(values, gen=stream["gen"], seq=seq),
                sender.heartbeat(1 << 20, 1 << 21, gen=stream["gen"]),
                sender.frame(type=int(PacketType.MH), gen=stream["gen"], flags=int(Flag.ACKV), ack=9, credit=99),
            ):
                port.send(bytes(frame))
                sent += 1
print(sent)
"""


def attack(
    lab: Lab, host: str, kind: AttackKind, description: Mapping[str, Any], *, count: int, seed: int
) -> Counter[str]:
    """Play an attacker of a kind to its end; how many of its frames must have died of which reason."""
    own = str(lab.topology.host(host).ip.ip)
    argv = [
        "attacker",
        lab.write(dict(description)),
        "--ip",
        own,
        "--kind",
        str(kind),
        "--count",
        count,
        "--seed",
        seed,
    ]
    with lab.python(host, *map(str, argv), module="catchment.sim.lab.traffic.play") as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, (output, lab.complaints(host).read_text())
    return Counter(json.loads(output)["expected_drops"])


def play(lab: Lab, host: str, script: str, *words: object) -> int:
    """Run an attacker to its end; how many frames it sent."""
    with lab.python(host, "-c", script, *map(str, words)) as process:
        output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, lab.complaints(host).read_text()
    return int(output)


@pytest.mark.sampled(4)
def test_a_poisoned_answer_for_the_switch_reaches_nobody(lab: Lab, rng: random.Random) -> None:
    switch = lab.topology.switch("s1")
    workers = ["w0", "w1", "w2"]
    with lab.deployed(luwu(lab, workers)) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
        for member in members.values():
            member.wait_started()
        before = lab.drops()
        hosts = [lab.topology.host(name) for name in (*workers, "opt")]
        victims = ",".join(f"{host.ip.ip}={host.mac}" for host in hosts)
        sent = play(lab, "out", POISON, switch.ip, lab.topology.host("out").ip.ip, victims, 20)
        assert (lab.drops() - before)["FORGED_ARP"] == sent > 0
        all_exact({host: member.result() for host, member in members.items()})
    for name in (*workers, "opt"):
        assert switch.mac in lab.network.run(name, ["ip", "neigh", "show", str(switch.ip)]), name


@pytest.mark.sampled(4)
def test_a_host_of_a_rack_cannot_speak_for_it_at_the_parent(tree: Lab, rng: random.Random) -> None:
    """Everything that its rack's trunk may carry to the parent, sent by a host of the rack that is in no job."""
    parent = tree.topology.switch("sp")
    with tree.deployed(luwu(tree, ["w0", "w2", "w3"])) as job:
        members = tree.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, tree) * 2)
        for member in members.values():
            member.wait_started()
        before = tree.drops()
        own = str(tree.topology.host("w1").ip.ip)
        description = tree.write(job.describe("w0"))
        sent = play(tree, "w1", INTRUDE, description, own, parent.ip, parent.mac, rng.randrange(1 << 32))
        assert (tree.drops() - before)["OTHER_SWITCH"] == sent > 0
        all_exact({host: member.result() for host, member in members.items()})
        # Nor may it say that it is the parent.
        before = tree.drops()
        victim = tree.topology.host("w0")
        sent = play(tree, "w1", POISON, parent.ip, own, f"{victim.ip.ip}={victim.mac}", 3)
        assert (tree.drops() - before)["FORGED_ARP"] == sent > 0


def test_hosts_of_a_rack_still_reach_each_other_and_ask_for_the_parent(tree: Lab) -> None:
    parent, asker = tree.topology.switch("sp"), tree.topology.host("w1")
    script = f"""
from catchment.sim.lab.traffic.raw_port import RawPort
with RawPort() as port:
    print(port.resolve("{parent.ip}", "{asker.ip.ip}"))
"""
    with tree.python("w1", "-c", script) as process:
        output, _ = process.communicate(timeout=200)
    assert output.split() == [parent.mac]


@pytest.mark.sampled(4)
def test_a_flood_only_costs_time(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1"])) as job:
        description = lab.write(job.describe("w0"))
        own = str(lab.topology.host("out").ip.ip)
        flood = lab.python("out", description, "--ip", own, "--seed", str(rng.randrange(1 << 32)), "--noise", "2000",
                           module="catchment.sim.lab.traffic.attacker")  # fmt: skip
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
        all_exact({host: member.result() for host, member in members.items()})
        output, _ = flood.communicate(timeout=200)
        assert json.loads(output)


@pytest.mark.sampled(4)
def test_old_generations_stay_outside(lab: Lab, rng: random.Random) -> None:
    """Frames of a job that was there before, from its own members' ports, while another is on the same slots."""
    with lab.deployed(luwu(lab, ["w0", "w1"], "before", slots=4)) as old:
        all_exact(lab.run(old, seed=rng.randrange(1 << 32), sizes=[1000]))
        stale = lab.write(old.describe("w0"))
    with lab.deployed(luwu(lab, ["w0", "w1"], "after", slots=4)) as job:
        before = lab.drops()
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab))
        own = str(lab.topology.host("w1").ip.ip)
        argv = [stale, "--ip", own, "--seed", str(rng.randrange(1 << 32)), "--repeat", "5"]
        with lab.python("w1", *argv, module="catchment.sim.lab.traffic.attacker") as process:
            output, _ = process.communicate(timeout=200)
        all_exact({host: member.result() for host, member in members.items()})
        assert (lab.drops() - before)["UNKNOWN_JOB"] >= json.loads(output)["UNKNOWN_JOB"] > 0


@pytest.mark.parametrize("victim", ["w0", "opt"])
def test_who_speaks_as_the_switch_changes_no_payload(lab: Lab, rng: random.Random, victim: str) -> None:
    """Sums, parameters and heartbeats in the switch's name, straight to a member from a host that is in no job."""
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"])) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
        for member in members.values():
            member.wait_started()
        before = lab.drops()
        sent = attack(lab, "out", AttackKind.SWITCH, job.describe(victim), count=400, seed=rng.randrange(1 << 32))
        all_exact({host: member.result() for host, member in members.items()})
        assert (lab.drops() - before)["FORGED_SOURCE"] == sent["FORGED_SOURCE"] == 400


@pytest.mark.sampled(4)
def test_another_program_on_a_member_s_host_changes_no_payload(lab: Lab, rng: random.Random) -> None:
    """An ordinary UDP socket beside each member: vectors near and far, heartbeats, parameters."""
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"])) as job:
        # One datagram that is far ahead, before the job begins, once stopped it for good.
        attack(lab, "w1", AttackKind.LOCAL, job.describe("w1"), count=30, seed=rng.randrange(1 << 32))
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
        for member in members.values():
            member.wait_started()
        before = lab.drops()
        sent: Counter[str] = Counter()
        for host in ("w1", "opt"):
            sent += attack(lab, host, AttackKind.LOCAL, job.describe(host), count=200, seed=rng.randrange(1 << 32))
        all_exact({host: member.result() for host, member in members.items()})
        assert (lab.drops() - before)["WRONG_UDP_PORT"] == sent["WRONG_UDP_PORT"] == 400


def test_doctor_names_the_host_that_sends_in_another_s_name(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1"])) as job:
        own = str(lab.topology.host("w1").ip.ip)
        argv = ["attacker", lab.write(job.describe("w1")), "--ip", own, "--kind", "local", "--count", "1000000",
                "--seed", rng.randrange(1 << 32)]  # fmt: skip
        with lab.python("w1", *map(str, argv), module="catchment.sim.lab.traffic.play") as process:
            try:
                found: list[Any] = []
                while not found:
                    assert process.poll() is None, lab.complaints("w1").read_text()
                    findings = examine(job, lab.topology, lab.fabric.clients, interval=1.0)
                    found = [one for one in findings if "WRONG_UDP_PORT" in one.what]
            finally:
                process.terminate()
                process.communicate(timeout=60)
        assert {one.subject for one in found} == {"w1"}


@pytest.mark.sampled(4)
def test_the_slots_of_a_small_reduction_have_the_same_guards(slots_lab: Lab, rng: random.Random) -> None:
    with slots_lab.deployed(slots_job(slots_lab, ["w0", "w1"])) as job:
        members = slots_lab.start(job, seed=rng.randrange(1 << 32), sizes=[400] * 8)
        for member in members.values():
            member.wait_started()
        before, description = slots_lab.drops(), job.describe("w0")
        forged = attack(slots_lab, "w5", AttackKind.SWITCH, description, count=200, seed=rng.randrange(1 << 32))
        local = attack(slots_lab, "w0", AttackKind.LOCAL, description, count=200, seed=rng.randrange(1 << 32))
        all_exact({host: member.result() for host, member in members.items()})
        counted = slots_lab.drops() - before
        assert counted["FORGED_SOURCE"] == forged.total() and counted["WRONG_UDP_PORT"] == local.total()


FAR = """
import json, random, sys
from pathlib import Path
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.raw_port import RawPort
told, rng = json.loads(Path(sys.argv[1]).read_text()), random.Random(int(sys.argv[2]))
stream = told["gradients" if "gradients" in told else "sums"]
sent = 0
with RawPort() as port:
    sender = Sender.of(told, port.mac, port.resolve(told["switch"][0], told["local"][0]))
    for slot in range(stream["slots"]):
        values = [rng.randrange(1 << 31) for _ in range(stream["lanes"])]
        seq = stream["base_seq"] + int(sys.argv[3]) + slot & 0xFFFFFFFF
        port.send(bytes(sender.vector(values, gen=stream["gen"], wid=told["wid"], seq=seq)))
        sent += 1
print(sent)
"""


def far_ahead_change_nothing(lab: Lab, job: JobPlan, sizes: list[int], rng: random.Random) -> None:
    """Frames come from a member's own address and port, for every slot, before the job begins and while it runs."""
    far = lab.write(job.describe("w1"))
    before = lab.drops()
    # Nobody has said anything yet: these take every slot, and the receivers' first words give them back.
    assert play(lab, "w1", FAR, far, rng.randrange(1 << 32), 1 << 29) > 0
    assert lab.drops() == before
    members = lab.start(job, seed=rng.randrange(1 << 32), sizes=sizes)
    for member in members.values():
        member.wait_started()
    sent = play(lab, "w1", FAR, far, rng.randrange(1 << 32), 1 << 30)
    all_exact({host: member.result() for host, member in members.items()})
    sent += play(lab, "w1", FAR, far, rng.randrange(1 << 32), (1 << 31) - 1)
    assert sent // 2 <= (lab.drops() - before)["BEYOND_WINDOW"] <= sent


@pytest.mark.sampled(4)
def test_vectors_far_ahead_change_and_stop_nothing(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"])) as job:
        far_ahead_change_nothing(lab, job, some_sizes(rng, lab) * 2, rng)


@pytest.mark.sampled(4)
def test_rounds_far_ahead_change_and_stop_nothing(slots_lab: Lab, rng: random.Random) -> None:
    with slots_lab.deployed(slots_job(slots_lab, ["w0", "w1"])) as job:
        far_ahead_change_nothing(slots_lab, job, [400] * 8, rng)
