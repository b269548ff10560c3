"""Several rails as one communicator, over two switches: the bits of one rail, whatever the split."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from collective_lab import communicators, together
from rail_ranks import GBIT, LANES, NAMES, RANKS, SLOTS, all_reduced, deployed, rail_sets, values

from catchment.host import Stream
from catchment.host.collectives import CollectiveError, Communicator, Delayed, Rail, RailPolicy, RailSet
from catchment.sim.golden.collectives import total
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType


@pytest.fixture(scope="module")
def labs() -> Iterator[list[ShmLab]]:
    """Two switches, a port for each rank on both: two rails."""
    with ExitStack() as exits:
        yield [exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024)) for _ in range(2)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("policy", RailPolicy)
def test_the_bits_are_those_of_one_rail(policy: RailPolicy, labs: list[ShmLab], rng: random.Random) -> None:
    # Of 20,000 elements one rail gets 31 vectors and less: an array of that length would be on the grid.  Of 16,385 one
    # gets a single one, when in slices.
    sizes = [1, 300, 4096, 4097, 8192, 16_385, 20_000, *(rng.randrange(1 << 17) for _ in range(4)), 200_001]
    arrays = [[values(rng, rank, size) for size in sizes] for rank in range(RANKS)]
    with rail_sets(labs, policy=policy, rates=(GBIT, GBIT // 3)) as ranks:

        def body(rank: Communicator) -> list[Any]:
            ours = [array.copy() for array in arrays[rank.rank]]
            works = [rank.all_reduce(array, op=("sum", "mean")[at % 2]) for at, array in enumerate(ours)]
            for work in works:
                work.wait()
            return ours

        outcomes = together(ranks, body)
    for at, size in enumerate(sizes):
        each = [arrays[rank][at] for rank in range(RANKS)]
        expected = total(each, DataType.FP32, lanes=LANES, slots=SLOTS, op=("sum", "mean")[at % 2])
        for outcome in outcomes:
            assert np.array_equal(outcome[at].view(np.uint32), expected.view(np.uint32)), f"{size} elements"


@pytest.mark.parametrize("policy", [RailPolicy.WATERFILL, RailPolicy.FIXED, RailPolicy.SLICES])
def test_a_large_operation_goes_over_both_rails(policy: RailPolicy, labs: list[ShmLab], rng: random.Random) -> None:
    elements = 1 << 19
    # A machine that is slow to run a switch would have its rail fail, which moves its share.
    with rail_sets(labs, policy=policy, rates=(2 * GBIT // 1000, GBIT // 1000), may_fail=False) as ranks:
        all_reduced(ranks, rng, elements)
        carried = [[state.bytes for state in rank.rails()] for rank in ranks]
    assert carried[0] == carried[1] == carried[2]
    assert sum(carried[0]) == 4 * elements
    share = carried[0][0] / sum(carried[0])
    assert share == pytest.approx(0.5 if policy is RailPolicy.SLICES else 2 / 3, abs=0.05)


def test_a_small_operation_goes_over_one_rail(labs: list[ShmLab], rng: random.Random) -> None:
    with rail_sets(labs, rates=(GBIT, 4 * GBIT), may_fail=False) as ranks:
        all_reduced(ranks, rng, 2048)
        assert [[state.parts for state in rank.rails()] for rank in ranks] == [[0, 1]] * RANKS


@pytest.mark.sampled(4)
def test_the_table_is_the_same_on_all_ranks_whoever_is_late(labs: list[ShmLab], rng: random.Random) -> None:
    """Rank 0 runs far ahead of the others: its operations wait for reports, and its calls return at once."""
    arrays = [[values(rng, rank, 40_000) for _ in range(90)] for rank in range(RANKS)]
    expected = [total([arrays[rank][at] for rank in range(RANKS)], DataType.FP32, lanes=LANES, slots=SLOTS)
                for at in range(90)]  # fmt: skip
    with rail_sets(labs) as ranks:
        ahead = [ranks[0].all_reduce(array) for array in arrays[0]]
        late = ranks[1:]
        together(late, lambda rank: [rank.all_reduce(array).wait() for array in arrays[rank.rank]])
        for work in ahead:
            work.wait()
        tables = [(rank.table_version, [rank.costs(elements) for elements in (512, 40_000)]) for rank in ranks]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0][0] >= 6  # after operations 2, 4, 8, 16, 32, 64
    for rank in range(RANKS):
        for at in range(90):
            assert np.array_equal(arrays[rank][at].view(np.uint32), expected[at].view(np.uint32))


def test_what_is_measured_moves_the_shares(labs: list[ShmLab], rng: random.Random) -> None:
    """The nominal rates are absurd; after some reports the costs are those of the rails."""
    with rail_sets(labs, rates=(800_000, 16_000), may_fail=False) as ranks:
        before = [state.cost.bytes_per_ms for state in ranks[0].rails()]
        for _ in range(70):
            assert all_reduced(ranks, rng, 1 << 16) == [None] * RANKS
        after = [state.cost.bytes_per_ms for state in ranks[0].rails()]
        parts = [state.parts for state in ranks[0].rails()]
    assert before == [100, 2]
    assert after[0] > 2 * before[0]
    assert parts[1] >= 1, "the rail that seemed slow was never tried"


def test_each_length_has_costs_of_its_own(labs: list[ShmLab], rng: random.Random) -> None:
    """A short operation tells a start, a long one a rate, too; what the 32nd reports counts from the 48th on."""
    with rail_sets(labs, rates=(800_000, 400_000), may_fail=False) as ranks:
        believed = ranks[0].costs(512)
        for _ in range(20):
            assert all_reduced(ranks, rng, 512) == [None] * RANKS
        short, untouched = ranks[0].costs(512), ranks[0].rails()
        for _ in range(30):
            assert all_reduced(ranks, rng, 1 << 16) == [None] * RANKS
        long = ranks[0].costs(1 << 16)
        agreed = [[rank.costs(elements) for elements in (512, 1 << 16)] for rank in ranks]
    assert agreed[0] == agreed[1] == agreed[2]
    assert short[0].start_ns != believed[0].start_ns and short[0].bytes_per_ms == believed[0].bytes_per_ms == 100
    assert untouched[0].cost.bytes_per_ms == 100
    assert max(cost.bytes_per_ms for cost in long) > 100


def test_every_operation_over_rails(labs: list[ShmLab], rng: random.Random) -> None:
    def body(rank: Communicator) -> None:
        me, size = rank.rank, rank.size
        sent = np.arange(me, me + 9000, dtype=np.int32)
        root = sent.copy()
        rank.broadcast(root, 1).wait()
        assert np.array_equal(root, np.arange(1, 9001, dtype=np.int32))
        gathered = np.zeros(size * 9000, np.int32)
        rank.all_gather(sent, gathered).wait()
        assert np.array_equal(gathered, np.concatenate([np.arange(r, r + 9000, dtype=np.int32) for r in range(size)]))
        part = np.zeros(3000, np.int32)
        rank.reduce_scatter(sent, part).wait()
        everybody = sum(np.arange(r, r + 9000, dtype=np.int32) for r in range(size))
        assert np.array_equal(part, everybody[3000 * me : 3000 * (me + 1)])
        largest = sent.copy()
        rank.all_reduce(largest, op="max").wait()
        assert np.array_equal(largest, np.arange(size - 1, size + 8999, dtype=np.int32))
        kept, result = sent.copy(), np.zeros(9000, np.int32)
        rank.reduce(kept, 2, result if me == 2 else None).wait()
        assert np.array_equal(kept, sent)
        assert me != 2 or np.array_equal(result, everybody)
        doubles = np.full(9000, 2.0**me, np.float32)
        rank.all_reduce(doubles, scaling=Delayed("x")).wait()
        assert np.array_equal(doubles, np.full(9000, 7.0, np.float32))
        rank.barrier().wait()

    with rail_sets(labs) as ranks:
        assert together(ranks, body) == [None] * RANKS


def test_ranks_with_different_policies_are_told(labs: list[ShmLab], rng: random.Random) -> None:
    policies = [RailPolicy.FIXED, RailPolicy.FIXED, RailPolicy.SLICES]
    with rail_sets(labs, policy=policies, rates=(GBIT, 3 * GBIT), timeout=5.0) as ranks:
        raised = all_reduced(ranks, rng, 1 << 18)
    assert all(isinstance(error, CollectiveError) for error in raised)
    assert {error.kind for error in raised} <= {"mismatch", "missing"}
    assert any(error.kind == "mismatch" and "rail" in str(error) for error in raised)


def test_a_dead_rail_without_spares_is_named(labs: list[ShmLab], rng: random.Random) -> None:
    with ExitStack() as exits:
        doomed = exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024))
        ranks = exits.enter_context(rail_sets([labs[0], doomed], policy=RailPolicy.FIXED, may_fail=False, timeout=1.0))
        doomed.kill_switch()
        raised = all_reduced(ranks, rng, 1 << 18)
    assert all(isinstance(error, CollectiveError) and "rail b" in str(error) for error in raised), raised


def test_a_rail_that_dies_is_named_long_before_the_timeout(labs: list[ShmLab], rng: random.Random) -> None:
    with ExitStack() as exits:
        doomed = exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024))
        job = rail_sets([labs[0], doomed], policy=RailPolicy.FIXED, may_fail=False, timeout=3600.0)
        ranks = exits.enter_context(job)
        doomed.kill_switch()
        raised = together(ranks, lambda rank: rank.all_reduce(values(rng, rank.rank, 1 << 18)).wait(60.0))
    assert [error.kind for error in raised] == ["unreachable"] * RANKS, raised
    assert all("rail b: the switch s1 at" in str(error) and "has gone" in str(error) for error in raised), raised


def test_rails_of_unequal_lanes_are_refused(labs: list[ShmLab]) -> None:
    with ExitStack() as exits:
        narrow = exits.enter_context(ShmLab(NAMES, lanes=64, slots=1024))
        descriptions = exits.enter_context(deployed([labs[0], narrow], (0, 0)))
        with pytest.raises(CollectiveError, match="rail b has rank 0 of 3, 64 lanes"):
            RailSet.of_job(descriptions["w0"])


def test_a_member_that_has_another_number_on_another_rail_is_refused(labs: list[ShmLab]) -> None:
    with deployed(labs, (0, 0)) as descriptions:
        description = descriptions["w0"]
    description["parts"]["b"]["wid"] = 1
    with pytest.raises(CollectiveError, match=r"job rails with rails \{'a': 0, 'b': 1\}"):
        RailSet.of_job(description)
    with pytest.raises(CollectiveError, match="job rails"):
        RailSet.of_job({"job": "rails"})


@pytest.mark.parametrize("count", [0, 9])
def test_numbers_of_rails_that_cannot_be(count: int) -> None:
    stream = Stream(gen=1, workers=2, slots=8, lanes=64)
    rails = [Rail(str(at), stream, ("127.0.0.1", 0), ("127.0.0.1", 1)) for at in range(count)]
    with pytest.raises(CollectiveError, match="rails"):
        RailSet(rails, rank=0)


def test_two_rails_of_one_name_and_a_negative_rate_are_refused() -> None:
    stream = Stream(gen=1, workers=2, slots=8, lanes=64)
    twice = [Rail("a", stream, ("127.0.0.1", 0), ("127.0.0.1", 1))] * 2
    with pytest.raises(CollectiveError, match="a name of its own"):
        RailSet(twice, rank=0)
    with pytest.raises(CollectiveError, match="-5 bit/s"):
        RailSet([Rail("a", stream, ("127.0.0.1", 0), ("127.0.0.1", 1), rate=-5)], rank=0)


def test_a_communicator_is_a_set_of_one_rail(labs: list[ShmLab], rng: random.Random) -> None:
    job = labs[0].allreduce(NAMES, slots=SLOTS, name="one")
    with communicators(labs[0], job) as ranks:
        arrays = [values(rng, rank, 70_000) for rank in range(RANKS)]
        expected = total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
        together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait())
    assert all(np.array_equal(array.view(np.uint32), expected.view(np.uint32)) for array in arrays)
