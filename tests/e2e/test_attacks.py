"""Malformed and spoofed frames change nothing but counters, even while the job they aim at runs."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from lab import Lab, all_exact
from test_sums import luwu, some_sizes


def attack(lab: Lab, host: str, description: dict[str, object], seed: int, *options: str) -> Counter[str]:
    """Frames that were sent, by the reason they must die of."""
    own = str(lab.topology.host(host).ip.ip)
    argv = [lab.write(description), "--ip", own, "--seed", str(seed), *options]
    with lab.python(host, *argv, module="catchment.sim.lab.traffic.attacker") as process:
        output, _ = process.communicate(timeout=200)
    assert process.returncode == 0, lab.complaints(host).read_text()
    return Counter(json.loads(output))


@pytest.mark.sampled(4)
def test_every_attack_is_counted_under_its_reason(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1"])) as job:
        for host, options in (("out", []), ("w1", ["--member"])):
            before = lab.drops()
            expected = attack(lab, host, job.describe("w0"), rng.randrange(1 << 32), "--repeat", "3", *options)
            assert expected.total() > 50
            counted = lab.drops() - before
            del counted["FLOOD_SOURCE"]
            assert counted == expected


@pytest.mark.sampled(4)
def test_a_job_under_attack_is_exact(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1", "w2"])) as job:
        description = job.describe("w0")
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab) * 2, dtype="fp32")
        for member in members.values():
            member.wait_started()
        outside = attack(lab, "out", description, rng.randrange(1 << 32), "--repeat", "10", "--noise", "500")
        inside = attack(lab, "w1", description, rng.randrange(1 << 32), "--repeat", "10", "--member")
        assert outside.total() + inside.total() > 500
        all_exact({host: member.result() for host, member in members.items()})


@pytest.mark.sampled(4)
def test_a_host_that_is_in_another_job_is_an_outsider(lab: Lab, rng: random.Random) -> None:
    with lab.deployed(luwu(lab, ["w0", "w1"], "victim")) as victim, lab.deployed(luwu(lab, ["w2"], "other")) as other:
        before = lab.drops()
        expected = attack(lab, "w2", victim.describe("w0"), rng.randrange(1 << 32))
        counted = lab.drops() - before
        assert counted["UNKNOWN_JOB"] == expected["UNKNOWN_JOB"] > 0
        for job in (victim, other):
            all_exact(lab.run(job, seed=rng.randrange(1 << 32), sizes=[500]))
