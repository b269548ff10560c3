"""Random tensors through a real network equal the numpy sum bit for bit, with and without loss."""

from __future__ import annotations

import random

import pytest
from lab import Lab, all_exact

from catchment.controlplane.jobs import JobPlan, plan_job


def luwu(lab: Lab, workers: list[str], name: str = "sum", slots: int = 32) -> JobPlan:
    slots = min(slots, lab.most_slots)
    return plan_job("luwu", lab.topology, name=name, workers=workers, root="opt", slots=slots, allocator=lab.allocator)


def some_sizes(rng: random.Random, lab: Lab, members: int = 4) -> list[int]:
    """Message lengths in elements: one lane, a whole frame, one more than that, some random ones."""
    most = lab.most_elements // members
    return [1, lab.lanes, lab.lanes + 1, *(rng.randrange(2, most) for _ in range(3))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0.0, 0.01])
@pytest.mark.parametrize("workers", range(1, 9))
def test_luwu(lab: Lab, workers: int, loss: float, rng: random.Random) -> None:
    members = rng.sample([f"w{i}" for i in range(8)], workers)
    dtype = rng.choice(["int32", "fp32"])
    before = lab.drops()
    for _ in range(8):  # short messages may all get through
        with lab.deployed(luwu(lab, members)) as job, lab.loss(loss):
            all_exact(lab.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab, workers), dtype=dtype))
        lost = lab.drops() - before
        if not loss or lost["FAULT_INGRESS"] + lost["FAULT_EGRESS"] > 0:
            break
    if loss:
        assert lost["FAULT_INGRESS"] + lost["FAULT_EGRESS"] > 0, "nothing was lost: this test tests nothing"
    else:
        assert set(lost) <= {"FLOOD_SOURCE", "OLD_SEQ", *lab.late_reasons}


@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_allreduce(lab: Lab, loss: float, rng: random.Random) -> None:
    job = plan_job(
        "allreduce", lab.topology, name="all", workers=["w3", "w1", "w6"], slots=lab.most_slots, allocator=lab.allocator
    )
    with lab.deployed(job), lab.loss(loss):
        all_exact(lab.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab), dtype="fp32"))


def test_several_jobs_at_once(lab: Lab, rng: random.Random) -> None:
    first = luwu(lab, ["w0", "w1", "w2", "w3"], "first")
    second = luwu(lab, ["w4", "w5", "w0"], "second", slots=8)
    third = plan_job(
        "allreduce", lab.topology, name="third", workers=["w6", "w7", "w1"], slots=16, allocator=lab.allocator
    )
    with lab.deployed(first), lab.deployed(second), lab.deployed(third), lab.loss(0.01):
        running = [
            lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab)) for job in (first, second, third)
        ]
        for members in running:
            all_exact({host: member.result() for host, member in members.items()})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_a_tree_of_switches(tree: Lab, loss: float, rng: random.Random) -> None:
    up = luwu(tree, ["w0", "w1", "w2", "w3"])
    allreduce = plan_job(
        "allreduce", tree.topology, name="all", workers=["w3", "w0"], slots=16, allocator=tree.allocator
    )
    with tree.deployed(up), tree.deployed(allreduce), tree.loss(loss):
        for job in (up, allreduce):
            all_exact(tree.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, tree), dtype="fp32"))


def test_a_job_after_another_on_the_same_slots(lab: Lab, rng: random.Random) -> None:
    """What the first left in the registers must not show in the second."""
    for _ in range(3):
        with lab.deployed(luwu(lab, ["w0", "w1"], slots=4)) as job:
            all_exact(lab.run(job, seed=rng.randrange(1 << 32), sizes=[1000, 7]))
