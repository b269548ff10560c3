"""The balancer of rails: equal to the golden model, never worse than any split on a grid, and the paper's numbers."""

from __future__ import annotations

import itertools
import random
from dataclasses import astuple, replace

import pytest

from catchment.host import _machines
from catchment.host.collectives import CollectiveError
from catchment.host.collectives.rail_split import RailCost, RailPolicy, RailShare, split
from catchment.sim.golden import rail_costs as costs
from catchment.sim.golden import rails as golden

KIB, MIB = 1 << 10, 1 << 20
SHARP, TCP = RailCost(9_000, 379_000), RailCost(982_000, 232_000)
"""The paper's Table I as start-up (ns) and rate (bytes/ms)."""


def random_rails(rng: random.Random, most: int) -> tuple[list[RailCost], list[int]]:
    """Costs over the range of real networks, some equal, some not to be used, and what several cost together."""
    rates = [rng.choice((0, 1_000, 12_500, 125_000, rng.randrange(1, 1 << 28))) for _ in range(rng.randint(1, most))]
    if not any(rates):
        rates[rng.randrange(len(rates))] = rng.randrange(1, 1 << 28)
    starts = (0, 1_000, rng.randrange(10**7))
    rails = [
        RailCost(
            rng.choice(starts),
            rate,
            rng.randrange(1000),
            rng.choice(starts),
            rng.choice((0, rate, rng.randrange(1 << 28))),
        )
        for rate in rates
    ]
    return rails, [0, *(rng.randrange(10**6) for _ in rails[1:])]


def golden_costs(rails: list[RailCost]) -> list[golden.RailCost]:
    """The same for the golden model."""
    return [
        golden.RailCost(
            r.start_ns, r.bytes_per_ms, r.nominal,
            (r.beside_start_ns, r.beside_bytes_per_ms) if r.beside_bytes_per_ms else None,
        )
        for r in rails
    ]  # fmt: skip


def finish(rails: list[RailCost], shares: list[RailShare]) -> float:
    """The time at which the slowest share has come, in ns."""
    return max(rails[s.rail].start_ns + 4e6 * s.elements / rails[s.rail].bytes_per_ms for s in shares)


def times_of(rails: list[RailCost], elements: int, policy: RailPolicy = RailPolicy.WATERFILL) -> float:
    """The time at which the split of `elements` has come, without a cost of several rails."""
    return finish(rails, split(rails, [0] * len(rails), policy, elements))


def test_every_policy_equals_the_golden_model(rng: random.Random) -> None:
    for _ in range(3000):
        rails, together = random_rails(rng, 8)
        elements = rng.choice((0, 1, 4095, 4096, 4097, rng.randrange(1 << 12), rng.randrange(1 << 22)))
        elements = elements if rng.random() < 0.9 else rng.randrange(1 << 36)
        policy = rng.choice([p for p in RailPolicy if p is not RailPolicy.SLICES or elements < 1 << 24])
        ours = split(rails, together, policy, elements)
        expected = golden.split(golden_costs(rails), together, golden.Policy(policy), elements)
        assert ours == [RailShare(s.rail, s.first, s.elements) for s in expected], (rails, together, policy, elements)


@pytest.mark.parametrize("policy", RailPolicy)
def test_shares_cover_every_element_once_and_cut_no_vector(policy: RailPolicy, rng: random.Random) -> None:
    for _ in range(300):
        rails, together = random_rails(rng, 8)
        elements = rng.randrange(1, 1 << 22)
        shares = split(rails, together, policy, elements)
        assert [s.first for s in shares] == [0, *itertools.accumulate(s.elements for s in shares)][:-1]
        assert sum(s.elements for s in shares) == elements
        assert all(s.first % golden.GRANULE == 0 and s.elements > 0 for s in shares)
        assert all(rails[s.rail].bytes_per_ms for s in shares)


def test_no_split_on_a_grid_is_better(rng: random.Random) -> None:
    for _ in range(60):
        count = rng.randint(2, 4)
        rails = [RailCost(rng.randrange(2_000_000), rng.randrange(10_000, 400_000)) for _ in range(count)]
        elements = rng.randrange(1 << 16, 1 << 23)
        ours = times_of(rails, elements)
        step = 20
        best = min(
            finish(rails, [RailShare(r, 0, elements * part // step) for r, part in enumerate(parts) if part])
            for parts in itertools.product(range(step + 1), repeat=count)
            if sum(parts) == step
        )
        granules = 4e6 * golden.GRANULE * count / min(rail.bytes_per_ms for rail in rails)
        assert ours <= best + granules


def test_a_larger_operation_never_uses_fewer_of_two_rails(rng: random.Random) -> None:
    """Three rails can do so: one that starts late and is fast can beat the two that are best for less."""
    for _ in range(200):
        rails = [RailCost(rng.randrange(2_000_000), rng.randrange(10_000, 400_000)) for _ in range(2)]
        together = [0, rng.randrange(500_000)]
        used = [len(split(rails, together, RailPolicy.WATERFILL, 1 << bits)) for bits in range(14, 30)]
        assert used == sorted(used)


def test_table_1_of_the_paper() -> None:
    for size, gain in ((8 * MIB, 1.596), (64 * MIB, 1.574)):
        alone = {8 * MIB: (22_140, 37_137), 64 * MIB: (181_484, 316_323)}[size]
        rails = [RailCost(0, size * 1000 // time) for time in alone]
        assert alone[0] * 1000 / times_of(rails, size // 4) == pytest.approx(gain, rel=0.01)


def test_the_threshold_between_one_rail_and_two() -> None:
    """S* = B_1 (L_2 - L_1) = 360 KiB, between the 128 KiB and the 512 KiB of the paper's section 5.2.2."""
    together = [0, 0]
    for size in (128 * KIB, 340 * KIB):
        assert [s.rail for s in split([SHARP, TCP], together, RailPolicy.WATERFILL, size // 4)] == [0]
    assert len(split([SHARP, TCP], together, RailPolicy.WATERFILL, 512 * KIB // 4)) == 2


def test_equal_rails_are_split_from_a_threshold_on_that_their_common_cost_makes() -> None:
    """S* = 2 B sigma: 256 KiB at a rate of 232 bytes/us and 565 us."""
    rails, together = [RailCost(0, 232_000)] * 2, [0, 565_000]
    assert len(split(rails, together, RailPolicy.WATERFILL, 240 * KIB // 4)) == 1
    assert len(split(rails, together, RailPolicy.WATERFILL, 280 * KIB // 4)) == 2


def test_equation_8_is_half_wrong_for_three_rails_and_water_filling_is_not() -> None:
    """Probe times of 1, 2 and 4: the paper's shares take 1.5 times as long as those by inverse times."""
    rails = [RailCost(0, 400_000), RailCost(0, 200_000), RailCost(0, 100_000)]
    elements = 1 << 26
    assert times_of(rails, elements, RailPolicy.PAPER) / times_of(rails, elements) == pytest.approx(1.5, rel=0.01)


def test_a_rail_that_is_five_times_slower_stays_out_of_the_papers_split() -> None:
    rails = [RailCost(0, 600_000), RailCost(0, 100_000)]
    assert [s.rail for s in split(rails, [0, 0], RailPolicy.PAPER, 1 << 24)] == [0]
    assert len(split(rails, [0, 0], RailPolicy.WATERFILL, 1 << 24)) == 2


def test_what_is_tried_equals_the_golden_model(rng: random.Random) -> None:
    tried = 0
    for _ in range(3000):
        rails, together = random_rails(rng, 8)
        elements = rng.choice((0, 1, 4096, 4097, rng.randrange(1 << 13), rng.randrange(1 << 22)))
        policy = rng.choice((RailPolicy.WATERFILL, RailPolicy.PAPER, RailPolicy.SINGLE))
        sample, turn = rng.choice((0, 8192)), rng.randrange(20)
        ours = _machines.tried([astuple(rail) for rail in rails], together, policy, elements, sample, turn)
        expected = golden.tried(
            golden_costs(rails), together, golden.Policy(policy), elements, sample=sample, turn=turn
        )
        assert ours == [(s.rail, s.first, s.elements) for s in expected], (rails, together, policy, elements)
        tried += bool(ours)
    assert tried > 300


def test_an_operation_on_two_rails_tries_each_alone_and_one_on_one_tries_both() -> None:
    hot = [(0, 1000, 0, 0, 800), (0, 900, 0, 0, 800)]
    shares = [_machines.tried(hot, [0, 0], RailPolicy.WATERFILL, 1 << 20, 0, turn) for turn in range(3)]
    assert [[rail for rail, _, _ in share] for share in shares] == [[0], [1], [0]]
    cold = [(0, 1000, 0, 0, 500), (0, 800, 0, 0, 400)]
    shares = [_machines.tried(cold, [0, 10**6], RailPolicy.WATERFILL, 1 << 20, 0, turn) for turn in range(3)]
    assert [[rail for rail, _, _ in share] for share in shares] == [[1], [0, 1], [1]]


def test_a_rail_that_takes_more_than_twice_as_long_is_tried_with_a_sample_alone() -> None:
    rails = [(0, 1000, 0, 0, 0), (0, 10, 0, 0, 0)]
    [*_, last] = _machines.tried(rails, [0, 10**9], RailPolicy.WATERFILL, 1 << 16, 8192, 0)
    assert last == (1, (1 << 16) - 8192, 8192)
    assert _machines.tried(rails, [0, 10**9], RailPolicy.WATERFILL, 1 << 16, 0, 0) == []


def random_sample(rng: random.Random, rails: int) -> costs.Sample:
    """A sample of one of a few classes, so that ranks have some in common."""
    return costs.Sample(
        rng.randrange(rails), rng.choice((8, 14, 15, 22, 36)), rng.random() < 0.5, rng.randrange(1, 1 << 30),
        rng.choice((0, rng.randrange(1, 1 << 32))),
    )  # fmt: skip


def test_costs_equal_the_golden_model_report_for_report(rng: random.Random) -> None:
    for _ in range(100):
        count, ranks, each = rng.randint(1, 8), rng.randint(1, 16), rng.randint(1, 16)
        believed = [(rng.randrange(1, 10**7), rng.randrange(1, 1 << 28)) for _ in range(count)]
        ours = _machines.CostTable(believed)
        expected = costs.CostTable([golden.RailCost(*cost) for cost in believed])
        for report in range(12):
            common = [random_sample(rng, count) for _ in range(each)]
            samples = [
                [
                    replace(one, start_ns=rng.randrange(1, 1 << 30), bytes_per_ms=rng.choice((0, one.bytes_per_ms)))
                    if rng.random() < 0.9
                    else random_sample(rng, count)
                    for one in common
                ]
                for _ in range(ranks)
            ]
            ours.learn([astuple(one) for rank in samples for one in rank], each)
            expected.learn(samples)
            for size in (0, 1, 1 << 14, (1 << 14) + 1, 1 << 20, 1 << 40, rng.randrange(1 << 38)):
                assert [golden_costs([RailCost(*words)])[0] for words in ours.costs(size)] == expected.costs(size)
            assert ours.version == report + 1


def test_each_size_has_a_class() -> None:
    sizes = [0, 1, 256, 257, 512, 513, 1 << 14, (1 << 14) + 1, 1 << 36, 1 << 40]
    assert [_machines.size_class(size) for size in sizes] == [8, 8, 8, 9, 9, 10, 14, 15, 36, 36]
    assert [costs.size_class(size) for size in sizes] == [8, 8, 8, 9, 9, 10, 14, 15, 36, 36]


def test_a_rail_is_as_fast_as_for_its_slowest_rank() -> None:
    one, two = [(0, 20, 0, 5_000, 8), (1, 20, 0, 3, 3)], [(0, 20, 0, 9_000, 4), (0, 21, 0, 1, 1)]
    for samples in ([*one, *two], [*two, *one]):
        table = _machines.CostTable([(100_000, 1000), (100_000, 2000)])
        table.learn(samples, 2)
        assert table.costs(1 << 20) == [(9_000, 4, 0, 9_000, 4), (100_000, 2000, 0, 100_000, 2000)]


def test_each_size_has_its_own_start_and_rate_alone_and_beside_others() -> None:
    table = _machines.CostTable([(100_000, 1000)])
    table.learn([(0, 14, 0, 50_000, 0), (0, 22, 0, 200_000, 5000), (0, 22, 1, 300_000, 4000)], 3)
    assert table.costs(1 << 14) == [(50_000, 5000, 0, 300_000, 4000)]
    assert table.costs(1 << 18) == [(50_000, 5000, 0, 300_000, 4000)]
    assert table.costs((1 << 18) + 1) == [(200_000, 5000, 0, 300_000, 4000)]
    assert table.costs(1 << 22) == [(200_000, 5000, 0, 300_000, 4000)]


@pytest.mark.parametrize("sample", [(8, 20, 0, 1, 1), (0, 7, 0, 1, 1), (0, 37, 0, 1, 1), (0, 20, 2, 1, 1)])
def test_what_a_report_cannot_be_about_is_left_out(sample: tuple[int, ...]) -> None:
    table = _machines.CostTable([(100_000, 1000)])
    table.learn([sample], 1)
    assert table.costs(1 << 20) == [(100_000, 1000, 0, 100_000, 1000)]


def test_a_meter_keeps_what_a_report_has_no_room_for() -> None:
    meter = _machines.CostMeter()
    for size_class in (20, 21, 22):
        meter.add(0, size_class, 4 << 20, 90_000, 1_090_000, 0)
        meter.add(0, size_class, 2 << 20, 70_000, 570_000, 0)
    assert meter.report(2) == [(0, 20, 70_000, 4 << 20), (0, 21, 70_000, 4 << 20)]
    assert meter.report(2) == [(0, 22, 70_000, 4 << 20)]
    assert meter.report(2) == []


def test_a_short_part_tells_a_start_and_no_rate() -> None:
    """All but the time that its bytes take at the rail's rate; and never less than until the ranks had agreed."""
    meter = _machines.CostMeter()
    meter.add(1, 14, 16 * KIB, 40_000, 200_000, 160_000)
    assert meter.report(4) == [(1, 14, 200_000 - 102_400, 0)]
    meter.add(1, 14, 16 * KIB, 40_000, 200_000, 100)
    assert meter.report(4) == [(1, 14, 40_000, 0)]


@pytest.mark.parametrize(
    ("rails", "together"),
    [([], []), ([RailCost(0, 0)], [0]), ([RailCost(0, 1)] * 9, [0] * 9), ([RailCost(0, 1)] * 2, [0])],
)
def test_rails_that_cannot_be(rails: list[RailCost], together: list[int]) -> None:
    with pytest.raises(CollectiveError) as caught:
        split(rails, together, RailPolicy.WATERFILL, 10)
    assert caught.value.kind == "argument"
    assert caught.value.hint
