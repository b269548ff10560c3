"""Every operation over shared memory, in processes: equal to numpy's bit for bit, whatever the network does."""

from __future__ import annotations

import random

import pytest
from collective_lab import all_exact, results, start

from catchment.sim.lab.shm_lab import ShmLab

TRIES = 10
"""One run of fifty at a loss of 0.001 loses nothing: that all of so many do is as good as impossible."""


def once(ranks: int, loss: float, rng: random.Random, *, lanes: int, slots: int, operations: int) -> int:
    """A job whose results are all exact; how many frames were sent again."""
    names = [f"w{i}" for i in range(ranks)]
    spoilt = f"loss={loss},dup={loss / 2},reorder={loss},seed={rng.randrange(1 << 16)}"
    faults = tuple(part for port in range(1, ranks + 1) for part in ("--fault", f"{port}:{spoilt}")) if loss else ()
    with ShmLab(names, lanes=lanes, extra=faults) as lab:
        job = lab.allreduce(names, slots=slots, packed=True)
        most = 40_000 // ranks
        said = results(start(lab, job, seed=rng.randrange(1 << 32), operations=operations, most=most))
    all_exact(said)
    return sum(result["stats"]["retransmissions"] for result in said.values())


def run(ranks: int, loss: float, rng: random.Random, *, lanes: int = 64, slots: int = 64, operations: int = 40) -> None:
    """Exact; with loss, jobs until one has lost something."""
    for _ in range(TRIES):
        resent = once(ranks, loss, rng, lanes=lanes, slots=slots, operations=operations)
        if resent or not loss or ranks == 1:
            return
    pytest.fail("nothing was lost: this test tests nothing")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_exact_without_loss(ranks: int, rng: random.Random) -> None:
    run(ranks, 0.0, rng)


@pytest.mark.parametrize("loss", [0.001, 0.01, 0.05])
def test_exact_under_loss_duplication_and_reordering(loss: float, rng: random.Random) -> None:
    run(rng.choice((2, 3, 4)), loss, rng)


def test_exact_with_many_lanes_and_few_slots(rng: random.Random) -> None:
    run(3, 0.01, rng, lanes=256, slots=8)


def test_sixteen_ranks(rng: random.Random) -> None:
    run(16, 0.01, rng, operations=8)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.001, 0.01, 0.05])
@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8, 16])
def test_exact_at_length(ranks: int, loss: float, rng: random.Random) -> None:
    run(ranks, loss, rng, operations=120)
    run(ranks, loss, rng, operations=120, lanes=256, slots=256)
