"""Ranks that run the switch's program themselves: the same sums, whoever dies."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from collective_lab import PATIENCE, all_exact, communicators, results, start, together

from catchment.host.collectives import Communicator
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.admin import SwitchAdmin

NAMES = ("w0", "w1")
HOSTS = (*NAMES, "w2", "w3")


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("callers") / "s"


@pytest.fixture(scope="module")
def lab(admin: Path) -> Iterator[ShmLab]:
    with ShmLab(HOSTS, slots=1024, in_callers=True, extra=("--admin", str(admin))) as lab:
        yield lab


def summed(rank: Communicator, rounds: int = 1, elements: int = 5000) -> list[int]:
    out = []
    for number in range(rounds):
        array = np.arange(elements, dtype=np.int32) * (rank.rank + 1) + number
        rank.all_reduce(array).wait(PATIENCE)
        assert np.array_equal(array, np.arange(elements, dtype=np.int32) * 3 + 2 * number)
        out.append(int(array[-1]))
    return out


def test_sums_are_exact_and_no_frame_passes_through_the_switch(lab: ShmLab) -> None:
    with communicators(lab, lab.allreduce(NAMES, slots=32, name="stopped")) as ranks:
        together(ranks, summed)
        os.kill(lab.switch.pid, signal.SIGSTOP)
        try:
            said = together(ranks, partial(summed, rounds=20))
        finally:
            os.kill(lab.switch.pid, signal.SIGCONT)
        assert said[0] == said[1]
        assert len(said[0]) == 20


@pytest.mark.parametrize(("jobs", "slots"), [(1, 256), (2, 64)])  # the rings hold what is in flight
def test_sums_that_ranks_take_early_are_no_sign_of_a_loss(lab: ShmLab, jobs: int, slots: int) -> None:
    """Their own overtake what others have put into their rings, of one job and of two on the same ports."""
    with contextlib.ExitStack() as open_jobs:
        ranks: list[Communicator] = []
        for number in range(jobs):
            job = lab.allreduce(NAMES, slots=slots, name=f"early {number} of {jobs}")
            ranks += open_jobs.enter_context(communicators(lab, job))
        asked = [0] * len(ranks)
        # Frames that a busy machine leaves to the switch come late, and are asked for: not each time.
        for _ in range(8):
            before = asked
            said = together(ranks, partial(summed, rounds=40, elements=60_000))
            assert all(isinstance(each, list) for each in said), said
            stats = [rank.stats() for rank in ranks]
            asked = [each["frames_asked_for"] for each in stats]
            if asked == before:
                break
        else:
            raise AssertionError(f"asked for each time: {stats}")
        # What ranks refuse are sums that they have twice: what is late is sent again.
        again = sum(each["retransmissions"] for each in stats)
        assert sum(each["rejected"] for each in stats) <= len(ranks) * again, stats


@pytest.mark.parametrize("names", [NAMES, HOSTS])
def test_random_operations_of_processes_are_exact(lab: ShmLab, names: tuple[str, ...], seed: int) -> None:
    job = lab.allreduce(names, slots=32, name=f"random {len(names)}")
    all_exact(results(start(lab, job, seed=seed, operations=25, most=6000)))


def test_sums_are_exact_while_frames_of_one_rank_are_lost(lab: ShmLab, admin: Path, seed: int) -> None:
    job = lab.allreduce(NAMES, slots=32, name="lossy")
    with SwitchAdmin(admin) as operator:
        operator.set_faults(2, "loss=0.01,dup=0.01,reorder=0.01,seed=5")
        all_exact(results(start(lab, job, seed=seed, operations=12, most=4000)))
        operator.set_faults(2, "off")


@pytest.mark.sampled(4)
def test_a_rank_killed_inside_is_an_error_of_its_job_and_of_no_other(lab: ShmLab, rng: random.Random) -> None:
    attempts = 4
    for attempt in range(attempts):
        with communicators(lab, lab.allreduce(("w2", "w3"), slots=32, name=f"other {attempt}")) as others:
            job = lab.allreduce(NAMES, slots=32, name=f"killed {attempt}")
            members = start(lab, job, forever=True, operations=1 << 30, most=20000, seed=attempt, timeout=10.0)
            for member in members.values():
                assert member.stdout is not None
                assert member.stdout.readline() == "started\n"
            rounds = rng.randrange(1, 30)
            together(others, partial(summed, rounds=rounds))
            members["w1"].kill()
            said = together(others, partial(summed, rounds=30))
            assert said[0] == said[1]
            assert len(said[0]) == 30
            members["w1"].communicate()
            if attempt + 1 == attempts:
                assert results({"w0": members["w0"]})["w0"]["peers"] == [1]
            else:
                members["w0"].kill()
                members["w0"].communicate()
            lab.remove(job)
