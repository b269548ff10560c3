"""Operations of few lanes leave in their vector of signatures: one vector, and the same results."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from collective_lab import communicators, together
from numpy.typing import NDArray

from catchment.host.collectives import Block, CollectiveError, Communicator, Delayed, Fixed, Work
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
LANES, SLOTS = 1024, 32
ROOM = LANES - 3 * len(NAMES)  # lanes behind everyone's signatures
NEAR = (1, ROOM - 1, ROOM, ROOM + 1)
SCALED = (257, *NEAR[1:])  # too long to be gathered
GATHERED = (1, 3, 255, 256)


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(NAMES, lanes=LANES, slots=512, mtu=9000, options="cells=256,bytes=4224") as lab:
        yield lab


@pytest.fixture
def ranks(lab: ShmLab, request: pytest.FixtureRequest) -> Iterator[list[Communicator]]:
    with communicators(lab, lab.allreduce(NAMES, slots=SLOTS, name=request.node.name[:40])) as all_ranks:
        yield all_ranks


def vectors(lanes: int) -> int:
    """The vectors of an operation, without a wrong guess of E."""
    return 1 if lanes <= ROOM else 1 + -(-lanes // LANES)


def done(work: Work, lanes: int) -> None:
    work.wait(60)
    assert work.statistics.vectors == vectors(lanes)


@pytest.mark.sampled(4)
def test_what_needs_no_guess_is_one_vector(ranks: list[Communicator], seed: int) -> None:
    """Integers, words, fixed scaling; and one more lane than there is room for."""

    def body(rank: Communicator) -> None:
        me = rank.rank
        for size in NEAR:
            numbers = np.random.default_rng((seed, size))
            ints = [numbers.integers(-(1 << 31), 1 << 31, size, dtype=np.int32) for _ in NAMES]
            floats = [numbers.standard_normal(size).astype(np.float32) for _ in NAMES]
            out: NDArray[Any] = np.zeros(size, np.int32)
            done(rank.all_reduce(ints[me], out), size)
            assert np.array_equal(out, golden.total(ints, DataType.INT32, lanes=LANES, slots=SLOTS))
            for op in ("sum", "mean"):
                out = np.zeros(size, np.float32)
                done(rank.all_reduce(floats[me], out, op=op, scaling=Fixed(3)), size)
                wanted = golden.total(floats, DataType.FP32, lanes=LANES, slots=SLOTS, op=op, exponent=3)
                assert np.array_equal(out, wanted)
            out = ints[me].copy()
            done(rank.broadcast(out, 2), size)
            assert np.array_equal(out, ints[2])
            out = np.zeros(3 * size, np.int32)
            done(rank.all_gather(ints[me], out), 3 * size)
            assert np.array_equal(out, np.concatenate(ints))
            out = floats[me].copy()
            done(rank.all_reduce(out, op="max"), 3 * size)
            assert np.array_equal(out, np.maximum.reduce(floats))

    assert together(ranks, body) == [None] * 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize("size", SCALED)
def test_a_guess_of_e_rides_and_a_wrong_one_leaves_again(ranks: list[Communicator], size: int) -> None:
    magnitudes = (1.0, 1.0, 2.0**-9, 2.0**-9, 300.0)

    def body(rank: Communicator) -> list[int]:
        counts = []
        for magnitude in magnitudes:
            arrays: list[NDArray[Any]] = [np.full(size, magnitude * 17.0**r, np.float32) for r in range(len(NAMES))]
            array = arrays[rank.rank].copy()
            work = rank.all_reduce(array)
            work.wait(60)
            assert np.array_equal(array, golden.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS))
            counts.append(work.statistics.vectors)
        return counts

    right = vectors(size)
    # A rider's data that leave again have a vector of their own; of other operations it is counted once.
    assert together(ranks, body) == [[2, right, 2, right, 2]] * 3


@pytest.mark.parametrize("size", GATHERED)
def test_sums_of_few_floats_are_one_vector_and_exact(ranks: list[Communicator], size: int, seed: int) -> None:
    """Whatever stands beside them: no guess, no exponent."""

    def body(rank: Communicator) -> None:
        for number in range(5):
            numbers = np.random.default_rng((seed, number))
            arrays = [(numbers.standard_normal(size) * 10.0 ** numbers.integers(-20, 20, size)) for _ in NAMES]
            floats = [array.astype(np.float32) for array in arrays]
            array = floats[rank.rank].copy()
            done(rank.all_reduce(array), 3 * size)
            assert np.array_equal(array, np.add.reduce([one.astype(np.float64) for one in floats]).astype(np.float32))

    assert together(ranks, body) == [None] * 3
    assert ranks[0].stats()["exponents_guessed"] == 0


def test_what_is_cut_is_counted_once(ranks: list[Communicator]) -> None:
    def body(rank: Communicator) -> list[tuple[int, int, bool, int]]:
        seen = []
        for scaling in (Block(), Block(), Fixed(0), Delayed("cut"), Delayed("cut")):
            array = np.full(ROOM, 1000.0 if rank.rank == 0 else 0.5, np.float32)
            if rank.rank == 1:
                array[7] = np.nan
            work = rank.all_reduce(array, scaling=scaling)
            work.wait(60)
            said = work.statistics
            seen.append((said.saturated, said.nonfinite, said.any_saturated, said.exponent))
        return seen

    first, second, third = together(ranks, body)
    # Only where E is given anything is cut, and what its vector needs is as much as there is.
    assert first == [(0, 0, False, 10)] * 2 + [(ROOM, 0, True, 127)] + [(0, 0, False, 10)] * 2
    assert second == [(0, 1, False, 10)] * 2 + [(1, 1, True, 127)] + [(0, 1, False, 10)] * 2
    assert third == [(0, 0, False, 10)] * 2 + [(0, 0, True, 127)] + [(0, 0, False, 10)] * 2


def test_exact_among_mismatches_and_cancellations(ranks: list[Communicator], rng: random.Random, seed: int) -> None:
    """Riders, longer ones, and such that fail, in every order: what was under way behind a failure begins again."""
    plan = [(rng.choice(("int", "float", "float", "barrier", "bad", "cancel")), rng.choice(NEAR)) for _ in range(80)]
    urgent = [rng.choice((0, 0, 0, 1)) for _ in plan]
    pauses = [[rng.random() < 0.2 for _ in plan] for _ in ranks]

    def body(rank: Communicator) -> list[tuple[str, str]]:
        me, works, outcome = rank.rank, [], []
        for number, (kind, size) in enumerate(plan):
            numbers = np.random.default_rng((seed, number))
            arrays: list[NDArray[Any]]
            if kind in ("int", "cancel"):
                arrays = [numbers.integers(-(1 << 31), 1 << 31, size, dtype=np.int32) for _ in NAMES]
            else:
                arrays = [numbers.standard_normal(size).astype(np.float32) for _ in NAMES]
            dtype = DataType.INT32 if kind in ("int", "cancel") else DataType.FP32
            own = arrays[me].copy()
            if kind == "bad":
                own = np.ones(size + (me == 1), np.float32)
            if kind == "barrier":
                work = rank.barrier(priority=urgent[number])
                own = arrays[me] = np.zeros(0, np.float32)
                arrays = [own] * 3
            else:
                work = rank.all_reduce(own, priority=urgent[number])
            if kind == "cancel" and me == number % 3:
                work.cancel()
            works.append((work, own, golden.total(arrays, dtype, lanes=LANES, slots=SLOTS), kind))
            if pauses[me][number] and kind not in ("bad", "cancel"):
                work.wait(60)
        for work, own, sums, kind in works:
            with contextlib.suppress(CollectiveError):
                work.wait(60)
            failure = work.exception()
            outcome.append((kind, failure.kind if failure else "done"))
            assert failure or np.array_equal(own, sums)
        return outcome

    first, second, third = together(ranks, body)
    assert first == second == third
    assert [kind for kind, _ in first] == [kind for kind, _ in plan]
    ends = {"bad": {"mismatch"}, "cancel": {"done", "cancelled"}}
    assert [(kind, end) for kind, end in first if end not in ends.get(kind, {"done"})] == []
