"""Packed lanes in collectives: sums as the golden model has them, half of the bytes, and who asks for other lanes."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from c_caller import Call, c_caller
from collective_lab import communicators, together
from numpy.typing import NDArray
from rail_ranks import LANES as RAIL_LANES
from rail_ranks import NAMES as RAIL_NAMES
from rail_ranks import RANKS, SLOTS, rail_sets
from test_ring_rails import RING, ranks_over

from catchment.host.collectives import (
    Block,
    CollectiveError,
    Communicator,
    Delayed,
    Fixed,
    RailPolicy,
    Scaling,
    Whole,
    calls,
)
from catchment.host.collectives.library import Result
from catchment.sim.golden import collectives as golden
from catchment.sim.golden import scaled_sums
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import HEADER_BYTES, DataType

NAMES = ("w0", "w1", "w2", "w3", "w4")
LANES = 64
FRAME = HEADER_BYTES + 4 * LANES
PATIENCE = 60.0
TYPES = (DataType.FP32, DataType.FP16, DataType.BF16)
PACKED: dict[str, Scaling] = {
    "block": Block(packed=True), "fixed": Fixed(1, packed=True), "whole": Whole(packed=True),
    "delayed": Delayed("gradients", packed=True),
}  # fmt: skip
SIZES = (1, 127, 128, 129, 1001, 5003)


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(NAMES, slots=4096) as lab:
        yield lab


def gradients(rng: random.Random, elements: int, dtype: DataType) -> list[NDArray[Any]]:
    """Elements of many magnitudes for every rank."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    drawn = numbers.standard_normal((len(NAMES), elements)) * 2.0 ** numbers.integers(-15, 0, (len(NAMES), elements))
    return [scaled_sums.to_wire(each.astype(np.float32), dtype) for each in drawn]


def summed(lab: ShmLab, arrays: list[NDArray[Any]], name: str, **options: Any) -> tuple[list[NDArray[Any]], list[Any]]:
    """The results and what each rank has counted."""
    results = [array.copy() for array in arrays]
    with communicators(lab, lab.allreduce(NAMES, slots=16, packed=True, name=name)) as ranks:

        def body(rank: Communicator) -> tuple[Any, dict[str, int]]:
            work = rank.all_reduce(results[rank.rank], **options)
            work.wait(PATIENCE)
            return work.statistics, rank.stats()

        counted = together(ranks, body)
    for one in counted:
        assert not isinstance(one, Exception), one
    return results, counted


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scaling", PACKED)
@pytest.mark.parametrize("dtype", TYPES)
def test_sums_are_as_defined(lab: ShmLab, dtype: DataType, scaling: str, rng: random.Random) -> None:
    """Odd lengths, more vectors than slots, means; 1 KiB and less is gathered unless E is given or of the whole."""
    job = lab.allreduce(NAMES, slots=16, packed=True, name=f"{dtype.name}-{scaling}")
    with communicators(lab, job) as ranks:
        for size in SIZES:
            for op in ("sum", "mean"):
                arrays = gradients(rng, size, dtype)
                want = golden.total(
                    arrays, dtype, lanes=LANES, slots=16, op=op, exponent=1 if scaling == "fixed" else None,
                    whole=scaling == "whole", packed=True,
                )  # fmt: skip
                name = Delayed(f"{size} {op}", packed=True)
                chosen = name if scaling == "delayed" else PACKED[scaling]

                def body(
                    rank: Communicator,
                    arrays: list[NDArray[Any]] = arrays,
                    op: str = op,
                    chosen: Scaling = chosen,
                ) -> None:
                    rank.all_reduce(arrays[rank.rank], op=op, scaling=chosen).wait(PATIENCE)

                assert together(ranks, body) == [None] * len(NAMES)
                for array in arrays:
                    np.testing.assert_array_equal(array, want)


def test_an_expected_exponent_that_holds_is_used(lab: ShmLab, rng: random.Random) -> None:
    arrays = gradients(rng, 900, DataType.FP32)
    results = [[array.copy() for array in arrays] for _ in range(2)]
    with communicators(lab, lab.allreduce(NAMES, slots=16, packed=True, name="expected")) as ranks:

        def body(rank: Communicator) -> None:
            for each in results:
                rank.all_reduce(each[rank.rank], scaling=PACKED["delayed"]).wait(PATIENCE)

        assert together(ranks, body) == [None] * len(NAMES)
    most = max(golden.scale(array, DataType.FP32).exponent for array in arrays)
    for each, expected in zip(results, (None, most + 1), strict=True):
        want = golden.total(arrays, DataType.FP32, lanes=LANES, slots=16, delayed=expected, packed=True)
        for result in each:
            np.testing.assert_array_equal(result, want)


def test_the_largest_numbers_of_all_ranks_do_not_overflow(lab: ShmLab) -> None:
    """Every rank sends the largest magnitude that E allows: the headroom of five ranks is out of the exponent."""
    size = 300
    signs = np.where(np.arange(size) % 3 == 0, -1, 1).astype(np.float32)
    results, counted = summed(lab, [signs * np.float32(2) for _ in NAMES], "largest", scaling=Fixed(1, packed=True))
    want = golden.total([signs * np.float32(2)] * 5, DataType.FP32, lanes=LANES, slots=16, exponent=1, packed=True)
    for result in results:
        np.testing.assert_array_equal(result, want)
        np.testing.assert_allclose(result, 10 * signs, rtol=2.0**-11)
    assert all(statistics.saturated == 0 for statistics, _ in counted)


@pytest.mark.parametrize("dtype", TYPES)
def test_half_of_the_bytes_travel(lab: ShmLab, dtype: DataType, rng: random.Random) -> None:
    """Counted by every rank: 200 vectors become 100, beside one of signatures and an agenda every 16."""
    arrays = gradients(rng, 200 * LANES, dtype)

    def sent(*, packed: bool) -> list[int]:
        counted = summed(lab, arrays, f"bytes-{dtype.name}-{packed}", scaling=Fixed(1, packed=packed))[1]
        return [stats["bytes_sent"] - HEADER_BYTES * stats["heartbeats_sent"] - FRAME * stats["retransmissions"]
                for _, stats in counted]  # fmt: skip

    def bytes_of(vectors: int) -> int:
        return FRAME * (vectors + 1 + vectors // 15)

    assert sent(packed=False) == [bytes_of(200)] * len(NAMES)
    assert sent(packed=True) == [bytes_of(100)] * len(NAMES)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf, 3.0e38])
@pytest.mark.parametrize("scaling", ["block", "fixed", "whole"])
def test_what_is_not_finite_spoils_its_vector_on_all_ranks(
    lab: ShmLab, scaling: str, special: float, rng: random.Random
) -> None:
    arrays = gradients(rng, 5 * 2 * LANES, DataType.FP32)
    odd, at = rng.randrange(len(NAMES)), rng.randrange(2 * LANES)
    arrays[odd][2 * LANES + at] = special
    results, counted = summed(lab, arrays, f"special-{scaling}-{special}", scaling=PACKED[scaling])
    exponent = 1 if scaling == "fixed" else None
    want = golden.total(
        arrays, DataType.FP32, lanes=LANES, slots=16, exponent=exponent, whole=scaling == "whole", packed=True
    )
    spoilt = np.isnan(want).reshape(5, -1)
    assert spoilt[1].all() and not spoilt[[0, 2, 3, 4]].any()
    for result in results:
        np.testing.assert_array_equal(result, want)
    finite = bool(np.isfinite(special))
    assert [statistics.nonfinite for statistics, _ in counted] == [
        0 if finite or rank != odd else 1 for rank in range(len(NAMES))
    ]


def test_the_error_is_that_of_fewer_bits(lab: ShmLab, rng: random.Random) -> None:
    """The sum is within half a step of each of five ranks, where a step is 2^(E-12)."""
    arrays = gradients(rng, 20_000, DataType.FP32)
    exact = np.sum([array.astype(np.float64) for array in arrays], axis=0)
    exponent = max(golden.scale(array, DataType.FP32).exponent for array in arrays)
    off = {}
    for packed in (False, True):
        results, _ = summed(lab, arrays, f"error-{packed}", scaling=Whole(packed=packed))
        off[packed] = float(np.abs(results[0] - exact).max())
    assert off[True] <= 5 / 2 * 2.0 ** (exponent - 12)
    assert 0 < off[False] < 2.0**-10 * off[True]


def test_a_rank_with_other_lanes_is_named(lab: ShmLab, rng: random.Random) -> None:
    """Every rank names it, whichever scaling; and the next operation works."""
    arrays = gradients(rng, 700, DataType.BF16)
    with communicators(lab, lab.allreduce(NAMES, slots=16, packed=True, name="named")) as ranks:
        for packs in (True, False):
            for plain in (Block(), Fixed(1), Whole()):
                odd = rng.randrange(len(NAMES))
                kind = type(plain).__name__.lower()

                def body(
                    rank: Communicator, odd: int = odd, kind: str = kind, plain: Any = plain, packs: bool = packs
                ) -> CollectiveError:
                    chosen = PACKED[kind] if (rank.rank == odd) == packs else plain
                    with pytest.raises(CollectiveError) as caught:
                        rank.all_reduce(arrays[rank.rank].copy(), scaling=chosen).wait(PATIENCE)
                    rank.barrier().wait(PATIENCE)
                    return caught.value

                errors = together(ranks, body)
                others = tuple(rank for rank in range(len(NAMES)) if rank != odd)
                assert [error.kind for error in errors] == ["mismatch"] * len(NAMES), errors
                assert [error.peers for error in errors] == [others if r == odd else (odd,) for r in range(len(NAMES))]
                assert all("packed lanes" in error.message and not error.fatal for error in errors)


@pytest.mark.sampled(4)
def test_data_behind_the_signatures_are_packed_too(rng: random.Random) -> None:
    """One frame from each rank for twice as many elements as there are lanes behind the signatures."""
    names, room = NAMES[:3], 256 - 9
    sizes = (300, 2 * room - 1, 2 * room, 2 * room + 1)
    with ShmLab(names, lanes=256) as lab:
        job = lab.allreduce(names, slots=16, packed=True, name="riding")
        with communicators(lab, job, scaling=Whole(packed=True)) as ranks:
            for size in sizes:
                for scaling in (Fixed(1, packed=True), None):
                    arrays = gradients(rng, size, DataType.FP32)[:3]
                    exponent = None if scaling is None else 1
                    want = golden.total(
                        arrays,
                        DataType.FP32,
                        lanes=256,
                        slots=16,
                        exponent=exponent,
                        whole=scaling is None,
                        packed=True,
                    )

                    def body(rank: Communicator, arrays: list[Any] = arrays, scaling: Any = scaling) -> int:
                        work = rank.all_reduce(arrays[rank.rank], scaling=scaling)
                        work.wait(PATIENCE)
                        return work.statistics.vectors

                    vectors = together(ranks, body)
                    if scaling is not None:
                        assert vectors == [1 if size <= 2 * room else 2] * 3
                    for array in arrays:
                        np.testing.assert_array_equal(array, want)


def test_parts_of_a_scattered_sum(lab: ShmLab, rng: random.Random) -> None:
    """A part begins and ends anywhere in a vector, also in the middle of a lane."""
    part = 1333
    arrays = gradients(rng, part * len(NAMES), DataType.BF16)
    want = golden.total(arrays, DataType.BF16, lanes=LANES, slots=16, packed=True)
    with communicators(lab, lab.allreduce(NAMES, slots=16, packed=True, name="parts")) as ranks:

        def body(rank: Communicator) -> NDArray[Any]:
            out = np.zeros(part, np.uint16)
            rank.reduce_scatter(arrays[rank.rank], out, scaling=PACKED["block"]).wait(PATIENCE)
            return out

        np.testing.assert_array_equal(np.concatenate(together(ranks, body)), want)


def test_integers_and_largest_elements_stay_as_they_are(lab: ShmLab, rng: random.Random) -> None:
    """A communicator whose floats are packed has 32-bit lanes for all else."""
    numbers = np.random.default_rng(rng.getrandbits(64))
    ints = numbers.integers(-(1 << 31), 1 << 31, (len(NAMES), 999), np.int64).astype(np.int32)
    floats = numbers.standard_normal((len(NAMES), 999)).astype(np.float32)
    job = lab.allreduce(NAMES, slots=16, packed=True, name="others")
    with communicators(lab, job, scaling=Block(packed=True)) as ranks:

        def body(rank: Communicator) -> tuple[Any, Any]:
            own, largest = ints[rank.rank].copy(), floats[rank.rank].copy()
            rank.all_reduce(own).wait(PATIENCE)
            rank.all_reduce(largest, op="max").wait(PATIENCE)
            return own, largest

        for own, largest in together(ranks, body):
            np.testing.assert_array_equal(own, np.add.reduce(ints, dtype=np.int32))
            np.testing.assert_array_equal(largest, floats.max(axis=0))


def test_a_job_without_packed_lanes_refuses_them(lab: ShmLab) -> None:
    job = lab.allreduce(NAMES[:1], slots=16, name="plain")
    with communicators(lab, job) as (rank,):
        with pytest.raises(CollectiveError, match="packed lanes in a job that has none") as caught:
            rank.all_reduce(np.ones(3, np.float32), scaling=Block(packed=True))
        assert caught.value.kind == "argument" and "--packed" in caught.value.hint
        assert refused(rank, packed=1) == ("argument", "the job's stream has no packed lanes")


def test_a_caller_in_c_is_refused_what_cannot_be_packed(lab: ShmLab) -> None:
    job = lab.allreduce(NAMES[:1], slots=16, packed=True, name="in-c")
    with communicators(lab, job) as (rank,):
        only_floats = ("argument", "sums and means of floats, and nothing else, are packed")
        assert refused(rank, packed=1, type=DataType.INT32, scaling=calls.NOT_SCALED) == only_floats
        assert refused(rank, packed=1, reduction=calls.OPS["max"], scaling=calls.NOT_SCALED) == only_floats
        assert refused(rank, packed=1) == ("", "")


def refused(rank: Communicator, **words: int) -> tuple[str, str]:
    """Kind and message of what becomes of a call of the C library, which is alone on its switch."""
    array = np.ones(700, np.float32)
    asked: dict[str, Any] = {
        "kind": calls.ALL_REDUCE, "type": DataType.FP32, "scaling": calls.NEGOTIATED, "elements": array.size,
        "source": array.ctypes.data, "target": array.ctypes.data, **words,
    }  # fmt: skip
    work = c_caller().catchment_group_start(rank.handle, ctypes.byref(Call(**asked)))
    c_caller().catchment_work_wait(work, int(PATIENCE * 1e9))
    result = Result()
    c_caller().catchment_work_result(work, ctypes.byref(result))
    said = (result.kind.decode(), result.message.decode()) if result.failed else ("", "")
    c_caller().catchment_work_free(work)
    return said


@pytest.fixture
def rail_labs() -> Iterator[list[ShmLab]]:
    with (
        ShmLab(RAIL_NAMES, lanes=RAIL_LANES, slots=1024) as a,
        ShmLab(RAIL_NAMES, lanes=RAIL_LANES, slots=1024) as b,
    ):
        yield [a, b]


def test_parts_over_rails_have_the_bits_of_one(rail_labs: list[ShmLab], rng: random.Random) -> None:
    size = 60_001
    arrays = gradients(rng, size, DataType.BF16)[:RANKS]
    want = golden.total(arrays, DataType.BF16, lanes=RAIL_LANES, slots=SLOTS, packed=True)
    with rail_sets(rail_labs, policy=RailPolicy.SLICES, packed=True, scaling=Block(packed=True)) as ranks:
        assert together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait(PATIENCE)) == [None] * RANKS
        assert sum(state.bytes for state in ranks[0].rails()) == pytest.approx(2 * size, abs=2)
    for array in arrays:
        np.testing.assert_array_equal(array, want)


def test_a_ring_adds_halves_as_a_switch_does(rng: random.Random) -> None:
    arrays = gradients(rng, 30_001, DataType.FP32)[:RANKS]
    want = golden.total(arrays, DataType.FP32, lanes=RAIL_LANES, slots=SLOTS, packed=True)
    with ranks_over({}, {"s": RING}, packed=True, scaling=Block(packed=True)) as ranks:
        assert together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait(PATIENCE)) == [None] * RANKS
    for array in arrays:
        np.testing.assert_array_equal(array, want)


def test_rails_of_which_one_has_no_packed_lanes_are_refused(rail_labs: list[ShmLab]) -> None:
    with (
        pytest.raises(
            CollectiveError, match=r"256 packed lanes and .* 256 lanes and|256 lanes and .* 256 packed lanes"
        ),
        ranks_over({"a": rail_labs[0]}, {"s": {**RING, "packed": True}}),
    ):
        pass
