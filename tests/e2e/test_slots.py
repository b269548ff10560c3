"""Jobs on p4sgd.p4 over a real network: every sum equals numpy's bit for bit, and the dead are named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from lab import Lab, all_exact, missing

from catchment.controlplane.diagnosis.waiting import waiting_for
from catchment.controlplane.jobs import JobPlan, plan_job
from catchment.controlplane.networks.state import admin_socket
from catchment.softswitch.admin import SwitchAdmin

WAITING = ("stalled", "unreachable")
"""Kinds of an error when others are missing: it heard something before, or nothing ever."""


def slots_job(lab: Lab, workers: list[str], name: str = "fast", slots: int = 16) -> JobPlan:
    slots = min(slots, lab.most_slots)
    return plan_job("slots", lab.topology, name=name, workers=workers, slots=slots, allocator=lab.allocator)


def some_sizes(rng: random.Random, lab: Lab) -> list[int]:
    """One lane, a whole frame, one more, more than all slots take, and many short ones so that slots are used again."""
    most = lab.most_elements // 40
    return [1, lab.lanes, lab.lanes + 1, rng.randrange(2, most), *(rng.randrange(1, 3 * lab.lanes) for _ in range(30))]


@contextmanager
def port_faults(lab: Lab, spec: str) -> Iterator[SwitchAdmin]:
    """The switch itself damages what passes its ports."""
    path = admin_socket(lab.network.addresses["s1"])
    assert path is not None
    ports = list(lab.topology.ports("s1"))
    with SwitchAdmin(path) as admin:
        for port in ports:
            admin.set_faults(port, spec)
        try:
            yield admin
        finally:
            for port in ports:
                admin.set_faults(port, "off")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0.0, 0.01])
@pytest.mark.parametrize("workers", [2, 4, 8])
def test_sums_are_exact(slots_lab: Lab, workers: int, loss: float, rng: random.Random) -> None:
    lab = slots_lab
    members = rng.sample([f"w{i}" for i in range(8)], workers)
    before = lab.drops()
    for number in range(8):  # short messages may all get through
        with lab.deployed(slots_job(lab, members)) as job, lab.loss(loss):
            dtype = ("int32", "fp32")[number % 2]
            all_exact(lab.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab), dtype=dtype))
        lost = lab.drops() - before
        if number >= 1 and (not loss or lost["FAULT_INGRESS"] + lost["FAULT_EGRESS"] > 0):
            break
    if loss:
        assert lost["FAULT_INGRESS"] + lost["FAULT_EGRESS"] > 0, "nothing was lost: this test tests nothing"
    else:
        assert set(lost) <= {"FLOOD_SOURCE", "OLD_SEQ", *lab.late_reasons}


def test_duplicates_and_disorder_change_nothing(slots_lab: Lab, rng: random.Random) -> None:
    lab = slots_lab
    if not lab.has_registers:
        pytest.skip("BMv2's ports inflict no faults")
    with lab.deployed(slots_job(lab, ["w0", "w1", "w2"], slots=4)) as job:
        with port_faults(lab, f"dup=0.2,reorder=0.2,loss=0.01,seed={rng.randrange(1 << 16)}"):
            results = lab.run(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab))
        all_exact(results)


def test_two_jobs_share_a_switch(slots_lab: Lab, rng: random.Random) -> None:
    lab = slots_lab
    first, second = (slots_job(lab, w, n) for n, w in (("a", ["w0", "w1", "w2"]), ("b", ["w2", "w3", "w0"])))
    with lab.deployed(first), lab.deployed(second), lab.loss(0.01):
        running = [lab.start(job, seed=rng.randrange(1 << 32), sizes=some_sizes(rng, lab)) for job in (first, second)]
        for members in running:
            all_exact({host: member.result() for host, member in members.items()})


@pytest.mark.sampled(4)
def test_a_worker_that_never_comes(slots_lab: Lab, rng: random.Random) -> None:
    lab = slots_lab
    with lab.deployed(slots_job(lab, ["w0", "w1", "w2"])) as job:
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=[50], timeout=4.0, hosts=["w0", "w2"])
        for host, member in members.items():
            result = member.result()
            assert result.get("kind") in WAITING, (host, result)


@pytest.mark.sampled(4)
def test_a_worker_that_dies(slots_lab: Lab, rng: random.Random) -> None:
    """Everybody else ends with an error in time, and the switch's counters say who it is."""
    lab = slots_lab
    workers = rng.sample([f"w{i}" for i in range(8)], 3)
    victim = rng.choice(workers)
    with lab.deployed(slots_job(lab, workers, slots=rng.choice([2, 4, 16]))) as job, lab.loss(0.01):
        sizes = [rng.randrange(1, 300) for _ in range(4000)]
        members = lab.start(job, seed=rng.randrange(1 << 32), sizes=sizes, timeout=10.0)
        for member in members.values():
            member.wait_started()
        members[victim].process.kill()
        members.pop(victim).process.wait()
        assert missing(lab, job, 1) == [(victim, "s1")]
        # A worker that died may leave nothing behind that waits for it: it had said all that it could.
        assert all(victim in waiting.members for waiting in waiting_for(job, lab.fabric.clients))
        for host, member in members.items():
            result = member.result()
            assert result.get("kind") in WAITING, (host, result)
            assert f"gen {job.streams[0].gen}" in result["error"], result
