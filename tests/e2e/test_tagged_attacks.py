"""Attacks on a job with tags, by root of a member's host, and by who has cut into its cable, change no payload.

The same cable changes payloads of a job without tags, so that what it does to one with tags would bite.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lab import Lab, all_exact
from shapes import LANES, PROGRAM, unique
from test_guard import attack
from test_sums import some_sizes

from catchment.controlplane.jobs import JobPlan, plan_job
from catchment.controlplane.topology import Target, star
from catchment.sim.lab.mininet.naming import interface_name
from catchment.sim.lab.mininet.nodes import merged_udp_command, nic_commands, run
from catchment.sim.lab.traffic.attack_kind import AttackKind

CUT_CABLE = Path(__file__).with_name("cut_cable.py")
PERIOD = 3
FEW_FRAMES = 40


@pytest.fixture
def tagged_lab(target: Target, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A network of its own whose switch can check tags: two workers and an optimizer node."""
    topology = star(["w0", "w1", "opt"], program=PROGRAM, target=target, lanes=LANES[target], tags=True)
    with Lab(unique(topology, f"tags-{abs(hash(request.node.name)) % 10000}", target), tmp_path) as lab:
        yield lab


def luwu(lab: Lab, *, tags: bool) -> JobPlan:
    return plan_job(
        "luwu", lab.topology, name="job", workers=["w0", "w1"], root="opt", slots=lab.most_slots,
        allocator=lab.allocator, tags=tags,
    )  # fmt: skip


class CutCable:
    """A host's cable that leads through somebody else's namespace."""

    def __init__(self, lab: Lab, host: str, seed: int) -> None:
        argv = ["unshare", "-n", sys.executable, CUT_CABLE, PERIOD, seed]
        with (lab.folder / f"cut-{host}.err").open("wb") as log:
            self._process = lab.network.popen(
                host, [str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._wait("ready")
        nic = lab.topology.host(host)
        # What stands between passes single frames on, so the kernel must not merge any.
        run(merged_udp_command(interface_name(lab.network.name, nic.link.switch, nic.link.port), on=False))
        theirs = str(self._process.pid)
        mtu = lab.topology.mtu
        peer = ["type", "veth", "peer", "name", "member", "netns", theirs]
        commands = [
            ["ip", "link", "set", "eth0", "down"],
            ["ip", "link", "set", "eth0", "name", "cable"],
            ["ip", "link", "set", "cable", "netns", theirs],
            ["ip", "link", "add", "eth0", "address", nic.mac, *peer],
            *nic_commands("eth0", str(nic.ip), mtu),
        ]
        for command in commands:
            lab.network.run(host, command)
        for interface in ("member", "cable"):
            run(["nsenter", "-t", theirs, "-n", "ip", "link", "set", interface, "mtu", str(mtu), "up"])
        self._say()
        self._wait("between")

    def close(self) -> Counter[str]:
        """Stop changing anything, and go on to pass it on; how many frames were changed each way."""
        self._say()
        assert self._process.stdout is not None
        return Counter(json.loads(self._process.stdout.readline()))

    def _say(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def _wait(self, what: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == what


def stats_of(results: dict[str, dict[str, object]], host: str) -> Counter[str]:
    stats = results[host]["stats"]
    assert isinstance(stats, dict)
    return Counter(stats["rejects"])


def counts_all(lab: Lab, counted: int, changed: int) -> bool:
    """Whether members count what was changed; BMv2's queues lose some of it."""
    late = changed - counted
    most = 64 if next(iter(lab.topology.switches.values())).target is Target.BMV2 else 0
    return counted > 0 and 0 <= late <= most


def until(condition: Callable[[], bool], what: Callable[[], object]) -> None:
    """Wait for what is under way to be looked at."""
    pause = threading.Event()
    for _ in range(6000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError(f"never: {what()}")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("victim", ["w0", "opt"])
def test_who_cut_into_a_cable_changes_no_payload(tagged_lab: Lab, rng: random.Random, victim: str) -> None:
    """Every third vector, sum and part of the parameters on the victim's cable has a bit changed."""
    lab = tagged_lab
    cable = CutCable(lab, victim, rng.randrange(1 << 32))
    before = lab.drops()
    # A frame in three is lost, so a timeout ends most windows: there are few of them.
    sizes = [1, lab.lanes, lab.lanes + 1, *(rng.randrange(2, FEW_FRAMES * lab.lanes) for _ in range(4))]
    with lab.deployed(luwu(lab, tags=True)) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=sizes, stays=True)
        for member in members.values():
            member.wait_started()
            member.wait_done()
        counted = (lab.drops() - before)["BAD_TAG"]  # copies that came after the last sum have passed the cable, too
        changed = cable.close()

        def told(host: str) -> int:
            return members[host].rejects()["tag"]

        assert changed["up"] and changed["down"]
        until(lambda: counts_all(lab, told(victim), changed["down"]), lambda: (told(victim), changed))
        others = [host for host in members if host != victim]
        if victim == "opt":  # whose parameters the switch passes on: each worker looks at them itself
            until(
                lambda: counts_all(lab, sum(map(told, others)), 2 * changed["up"]),
                lambda: (list(map(told, others)), changed),
            )
        assert counted == (0 if victim == "opt" else changed["up"])
        results = {host: member.result() for host, member in members.items()}
    all_exact(results)
    if victim != "opt":
        assert not any(stats_of(results, host)["tag"] for host in others)


@pytest.mark.sampled(4)
def test_the_same_cable_changes_what_has_no_tags(tagged_lab: Lab, rng: random.Random) -> None:
    lab = tagged_lab
    cable = CutCable(lab, "w0", rng.randrange(1 << 32))
    with lab.deployed(luwu(lab, tags=False)) as job:
        results = lab.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
    changed = cable.close()
    assert changed["up"] and changed["down"]
    assert results["opt"]["wrong"] and results["w0"]["wrong"] and not results["w1"]["wrong"]


@pytest.mark.sampled(4)
def test_root_of_a_member_s_host_changes_no_payload_without_the_key(tagged_lab: Lab, rng: random.Random) -> None:
    """Each member's next frames from its own address and port, before the job begins and while it runs."""
    lab = tagged_lab
    before, sent = lab.drops(), Counter[str]()
    with lab.deployed(luwu(lab, tags=True)) as job:

        def forge(count: int) -> None:
            for host in ("w1", "opt"):
                seed = rng.randrange(1 << 32)
                sent.update(attack(lab, host, AttackKind.KEYLESS, job.describe(host), count=count, seed=seed))

        forge(40)
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2)
        for member in members.values():
            member.wait_started()
        forge(100)
        all_exact({host: member.result() for host, member in members.items()})
        assert (lab.drops() - before)["BAD_TAG"] == sent["BAD_TAG"] == sent.total() == 280
