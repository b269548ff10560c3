"""Attacks on a job on p4sgd.p4 with tags, by root of a worker's host and by who has cut into its cable."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, all_exact
from shapes import SLOTS_PROGRAM, unique
from test_guard import attack
from test_tagged_attacks import CutCable, stats_of

from catchment.controlplane.jobs import JobPlan, plan_job
from catchment.controlplane.topology import Target, star
from catchment.sim.lab.traffic.attack_kind import AttackKind

WORKERS = ("w0", "w1", "w2")
SIZES = (5, 200, 64, 77, 200, 8)


@pytest.fixture
def tagged_slots_lab(target: Target, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A network of its own whose switch can check tags: three workers."""
    topology = star(WORKERS, program=SLOTS_PROGRAM, target=target, lanes=8, tags=True)
    with Lab(unique(topology, f"tags-{abs(hash(request.node.name)) % 10000}", target), tmp_path) as lab:
        yield lab


def slots(lab: Lab, *, tags: bool) -> JobPlan:
    return plan_job(
        "slots", lab.topology, name="job", workers=WORKERS, slots=lab.most_slots, allocator=lab.allocator, tags=tags
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("tags", [True, False])
def test_who_cut_into_a_worker_s_cable(tagged_slots_lab: Lab, rng: random.Random, tags: bool) -> None:
    """Every third vector and sum on w1's cable has a bit changed: with tags no sum is, without all workers' are."""
    lab = tagged_slots_lab
    cable = CutCable(lab, "w1", rng.randrange(1 << 32))
    before = lab.drops()
    with lab.deployed(slots(lab, tags=tags)) as job:
        results = lab.run(job, seed=rng.randrange(1 << 32), sizes=SIZES)
        counted = lab.drops() - before
    changed = cable.close()
    assert changed["up"] and changed["down"]
    if not tags:
        assert all(results[worker]["wrong"] for worker in WORKERS)
        return
    all_exact(results)
    assert counted["BAD_TAG"] == changed["up"]
    told = {worker: stats_of(results, worker)["tag"] for worker in WORKERS}
    assert told["w0"] == told["w2"] == 0
    assert 0 < told["w1"] <= changed["down"], "it has looked at all but copies that came after its last sum"


@pytest.mark.sampled(4)
def test_root_of_a_worker_s_host_changes_no_sum_without_the_key(tagged_slots_lab: Lab, rng: random.Random) -> None:
    """A worker's next vectors and acknowledgements from its own address and port, before the job and while it runs."""
    lab = tagged_slots_lab
    before, sent = lab.drops(), Counter[str]()
    with lab.deployed(slots(lab, tags=True)) as job:

        def forge(count: int) -> None:
            seed = rng.randrange(1 << 32)
            sent.update(attack(lab, "w1", AttackKind.KEYLESS, job.describe("w1"), count=count, seed=seed))

        forge(40)
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=SIZES * 4)
        for member in members.values():
            member.wait_started()
        forge(100)
        all_exact({host: member.result() for host, member in members.items()})
        assert (lab.drops() - before)["BAD_TAG"] == sent["BAD_TAG"] == sent.total() == 140
