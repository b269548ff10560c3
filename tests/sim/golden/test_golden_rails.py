"""Which rails are used, round by round, worked out by hand."""

from __future__ import annotations

from catchment.sim.golden.rail_costs import CostTable, Sample
from catchment.sim.golden.rails import RailCost, RailHealth, Record, finish_ns

BOTH = 0b11


def round_of(health: RailHealth, clock_ms: int, *ranks: tuple[int, int], planned: int = 0) -> tuple[int, int]:
    """A round in which each rank says what it suspects, and what is settled (bits of rails)."""
    return health.learn(
        [Record(planned + at, clock_ms, suspected, settled) for at, (suspected, settled) in enumerate(ranks)]
    )


def test_an_operation_takes_a_nanosecond_at_least() -> None:
    assert finish_ns([RailCost(0, 1000)], [0], 0) == 1
    assert finish_ns([RailCost(7, 1000)], [0], 0) == 7


def test_a_cost_fits_into_the_word_that_ranks_exchange() -> None:
    table = CostTable([RailCost(1, 1)])
    table.learn([[Sample(0, 10, False, 1 << 40, 1 << 40)]])
    (cost,) = table.costs(1 << 10)
    assert (cost.start_ns, cost.bytes_per_ms) == ((1 << 32) - 1, (1 << 32) - 1)


def test_one_rank_s_word_takes_a_rail_down() -> None:
    health = RailHealth(3)
    assert round_of(health, 0, (0, 0b111), (0b100, 0b011), planned=5) == (6, 0b111)
    assert health.up == {0, 1}
    assert [health.state(rail) for rail in range(3)] == [0, 0, 1]


def test_the_last_rail_stays_until_another_can_take_its_place() -> None:
    health = RailHealth(2)
    round_of(health, 0, (0b10, 0b01), (0, 0b01))
    assert health.up == {0}
    round_of(health, 1, (0b11, BOTH), (0, BOTH))
    assert health.up == {0}, "the other is suspected, too"
    round_of(health, 2, (0b01, BOTH), (0, 0b01))
    assert health.up == {0}, "a rank lacks rounds over the other"
    round_of(health, 3, (0b01, BOTH), (0, BOTH))
    assert health.up == {1}


def test_a_rail_comes_back_after_probation_without_a_break() -> None:
    health = RailHealth(2)
    round_of(health, 0, (0b10, 0b01))
    round_of(health, 100, (0, BOTH))
    assert health.state(1) == 2
    round_of(health, 100 + health.PROBATION_MS - 1, (0, BOTH))
    assert health.up == {0}
    round_of(health, 100 + health.PROBATION_MS, (0, 0b01))
    assert health.state(1) == 1, "a rank lacks a round: it begins anew"
    round_of(health, 1000, (0, BOTH))
    round_of(health, 1100, (0b10, BOTH))
    assert health.state(1) == 1, "it is suspected: it begins anew"
    round_of(health, 1200, (0, BOTH))
    round_of(health, 1200 + health.PROBATION_MS, (0, BOTH))
    assert health.up == {0, 1}


def needed_after(pauses_ms: list[int]) -> list[int]:
    """The probation of a rail that fails again so long after each return."""
    health, now, needed = RailHealth(2), 0, []
    for pause in [0, *pauses_ms]:
        now += pause
        round_of(health, now, (0b10, 0b01))
        began = now = now + 1
        round_of(health, now, (0, BOTH))
        while 1 not in health.up:
            now += 1 if now - began < 2000 else 100
            round_of(health, now, (0, BOTH))
        needed.append(now - began)
    return needed


def test_a_rail_that_fails_soon_again_waits_twice_as_long() -> None:
    least = RailHealth.PROBATION_MS
    soon = RailHealth.SOON_MS
    assert needed_after([soon - 1, 1, soon, 1]) == [least, 2 * least, 4 * least, least, 2 * least]


def test_probation_has_a_longest() -> None:
    assert needed_after([1] * 9)[-2:] == [RailHealth.LONGEST_PROBATION_MS] * 2


def test_a_rail_that_brings_no_rounds_is_asked_for_a_while() -> None:
    health = RailHealth(2)
    asked = [round_of(health, now, (0b10, 0b01))[1] for now in range(health.MOST_WAITING + 1)]
    assert asked == [BOTH] * (health.MOST_WAITING - 1) + [0b01] * 2
    assert round_of(health, 100, (0, BOTH))[1] == BOTH
