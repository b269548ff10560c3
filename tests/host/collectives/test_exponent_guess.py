"""Short operations with a negotiated E send their data on a guess of it: right or wrong, the sums are the same."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
LANES, SLOTS = 64, 32
MOST = LANES * SLOTS  # elements of the longest operation that is sent on a guess
LEAST = 257  # what is shorter is gathered


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(NAMES, lanes=LANES, slots=4096) as lab:
        yield lab


@pytest.fixture
def ranks(lab: ShmLab, request: pytest.FixtureRequest) -> Iterator[list[Communicator]]:
    with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name=request.node.name[:40])) as all_ranks:
        yield all_ranks


def wanted(arrays: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    return golden.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)


def guesses(rank: Communicator) -> tuple[int, int]:
    stats = rank.stats()
    return stats["exponents_guessed"], stats["exponents_missed"]


@pytest.mark.sampled(4)
def test_the_same_values_again_are_guessed_right(ranks: list[Communicator], rng: random.Random) -> None:
    values = [np.float32(2.0**e) for e in rng.sample(range(-20, 20, golden.GRID), 3)]  # other exponents on the grid

    def body(rank: Communicator) -> None:
        for _ in range(5):
            array = np.full(MOST, values[rank.rank], np.float32)
            work = rank.all_reduce(array)
            work.wait(60)
            assert np.array_equal(array, wanted([np.full(MOST, v, np.float32) for v in values]))
            assert work.statistics.vectors == 1 + SLOTS

    assert together(ranks, body) == [None] * 3
    # At first each rank goes by its own values.
    assert [guesses(rank) for rank in ranks] == [(5, 1)] * 3


@pytest.mark.sampled(4)
def test_other_values_are_guessed_wrong_and_sent_again(ranks: list[Communicator]) -> None:
    def body(rank: Communicator) -> None:
        for number in range(6):
            arrays = [np.full(300, 2.0 ** (4 * r - 16 * number), np.float32) for r in range(3)]
            array = arrays[rank.rank].copy()
            work = rank.all_reduce(array)
            work.wait(60)
            assert np.array_equal(array, wanted(arrays))
            assert (work.statistics.vectors, work.statistics.any_saturated) == (1 + 5, False)

    assert together(ranks, body) == [None] * 3
    assert [guesses(rank) for rank in ranks] == [(6, 6)] * 3


@pytest.mark.sampled(4)
def test_fresh_values_of_one_distribution_are_guessed_right(ranks: list[Communicator], seed: int) -> None:
    """The largest of a vector of normal values is mostly between 2 and 4, and always below 16, where the grid ends."""

    def body(rank: Communicator) -> None:
        for number in range(20):
            arrays = [np.random.default_rng((seed, number, r)).standard_normal(MOST, np.float32) for r in range(3)]
            array = arrays[rank.rank].copy()
            rank.all_reduce(array).wait(60)
            assert np.array_equal(array, wanted(arrays))

    assert together(ranks, body) == [None] * 3
    assert [guesses(rank) for rank in ranks] == [(20, 0)] * 3


@pytest.mark.sampled(4)
def test_what_is_longer_is_not_guessed(ranks: list[Communicator], rng: random.Random) -> None:
    """Vectors behind the slots have an E of their own."""
    sizes = [MOST + 1, 2 * MOST, 3 * MOST + rng.randrange(MOST)]
    magnitudes = [1.0, 1.0, 64.0, 64.0, 1.0]

    def body(rank: Communicator) -> None:
        for size in sizes:
            for magnitude in magnitudes:
                ramp = np.linspace(1, 1000, size, dtype=np.float32) * np.float32(magnitude)
                arrays = [ramp * np.float32(r + 1) for r in range(3)]
                array = arrays[rank.rank].copy()
                work = rank.all_reduce(array)
                work.wait(60)
                assert np.array_equal(array, wanted(arrays))
                assert (work.statistics.vectors, work.statistics.saturated) == (1 + -(-size // LANES), 0)

    assert together(ranks, body) == [None] * 3
    assert [guesses(rank) for rank in ranks] == [(0, 0)] * 3


def test_what_is_not_finite_is_counted_once(ranks: list[Communicator]) -> None:
    """Whether the guess was right or not, and although such a vector always leaves again."""

    def body(rank: Communicator) -> list[tuple[int, int, bool]]:
        seen = []
        for magnitude in (1.0, 1.0, 1000.0, 1000.0):
            array = np.full(300, magnitude if rank.rank == 0 else 1.0, np.float32)
            if rank.rank == 1:
                array[7] = np.nan
            work = rank.all_reduce(array)
            work.wait(60)
            statistics = work.statistics
            seen.append((statistics.saturated, statistics.nonfinite, statistics.any_saturated))
        return seen

    assert together(ranks, body) == [[(0, 0, False)] * 4, [(0, 1, False)] * 4, [(0, 0, False)] * 4]
    assert [(rank.stats()["saturated"], rank.stats()["nonfinite"]) for rank in ranks] == [(0, 0), (0, 4), (0, 0)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_exact_among_mismatches_and_priorities(loss: float, rng: random.Random, seed: int) -> None:
    """Guesses in flight are void behind a mismatch, and overtaken by what is urgent: all ranks begin again alike.

    With loss and disorder, sums of data overtake signatures that may void them.
    """
    spoilt = f"loss={loss},reorder={loss},seed={rng.randrange(1 << 16)}"
    faults = tuple(part for port in (1, 2, 3) for part in ("--fault", f"{port}:{spoilt}")) if loss else ()
    with (
        ShmLab(NAMES, lanes=LANES, slots=4096, extra=faults) as lab,
        communicators(lab, lab.allreduce(NAMES, slots=SLOTS)) as ranks,
    ):
        among_mismatches_and_priorities(ranks, rng, seed)


def among_mismatches_and_priorities(ranks: list[Communicator], rng: random.Random, seed: int) -> None:
    """Operations of which some are mismatches and some urgent, many under way at once."""
    plan = [
        (
            rng.random() < 0.25,
            rng.choice((0, 0, 0, 1)),
            rng.choice((rng.randrange(1, LEAST), rng.randrange(LEAST, 2 * MOST))),
            rng.choice((0, 0, 4)),
        )
        for _ in range(60)
    ]
    pauses = [[rng.random() < 0.3 for _ in plan] for _ in ranks]

    def body(rank: Communicator) -> int:
        works = []
        for number, (mismatch, priority, size, spread) in enumerate(plan):
            numbers = np.random.default_rng((seed, number))
            arrays = [(numbers.standard_normal(size) * 2.0 ** (spread * r)).astype(np.float32) for r in range(3)]
            own = arrays[rank.rank].copy()
            if mismatch:  # integers wait for nothing, so what comes behind them is under way
                own = np.ones(size + (rank.rank == 1), np.int32)
            works.append((rank.all_reduce(own, priority=priority), own, wanted(arrays), mismatch))
            if pauses[rank.rank][number]:
                with contextlib.suppress(CollectiveError):
                    works[-1][0].wait(60)
        failed = 0
        for work, own, sums, mismatch in works:
            if mismatch:
                with pytest.raises(CollectiveError, match="calls"):
                    work.wait(60)
                failed += 1
            else:
                work.wait(60)
                assert np.array_equal(own, sums)
        return failed

    assert together(ranks, body) == [sum(one[0] for one in plan)] * 3
    assert len({guesses(rank) for rank in ranks}) == 1
