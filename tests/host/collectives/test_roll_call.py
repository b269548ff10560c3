"""A rank that waits says so again and again, as often as its link can bear."""

from __future__ import annotations

import random

import pytest

from catchment.host import _machines

MS = 1_000_000
RANKS, OWN, GONE = 5, 1, 3
GONE_BIT = 1 << GONE


@pytest.mark.parametrize(("round_trip", "interval"), [(0, 20), (60, 20), (200, 50), (440, 100), (10_000, 100)])
def test_calls_are_a_share_of_a_round_trip_apart(round_trip: int, interval: int) -> None:
    """Milliseconds; what all ranks call comes down to each of them, and a slow link has other things to carry."""
    roll_call = _machines.RollCall(4, 1)
    if round_trip:
        roll_call.on_round_trip(round_trip * MS)
    roll_call.on_said(1000 * MS)
    roll_call.on_waiting((1000 + interval) * MS - 1)
    assert not roll_call.due((1000 + interval) * MS - 1)
    roll_call.on_call(0, 0, 1001 * MS)  # another rank's call wants an answer, which is a call, too
    assert roll_call.deadline == (1000 + interval) * MS
    assert roll_call.due((1000 + interval) * MS)


def waits(call: _machines.RollCall, times: dict[int, range]) -> None:
    """The switch carries words of ranks at these milliseconds."""
    for at, rank in sorted((at, rank) for rank, every in times.items() for at in every):
        call.on_call(rank, 0, at * MS)


def test_a_rank_that_never_came_is_missing_and_one_that_is_late_is_not(rng: random.Random) -> None:
    """Rank 0 stops half a second before a timeout of two, as one does that is not run; the others speak."""
    calls = {rank: range(1000 + rng.randrange(20), 3000, 20) for rank in (OWN, 2, 4)}
    roll_call = _machines.RollCall(RANKS, OWN)
    waits(roll_call, {**calls, 0: range(1000, 2300, 20)})
    assert roll_call.missing(1000 * MS, 3000 * MS) == GONE_BIT
    waits(roll_call, {GONE: range(3001, 3002)})
    assert roll_call.missing(1000 * MS, 3010 * MS) == 0b1, "it has come, and now rank 0 has been silent longest"
    waits(roll_call, {0: range(3011, 3012)})
    assert roll_call.missing(1000 * MS, 3020 * MS) == 0


def test_a_switch_that_is_not_run_makes_no_rank_missing(rng: random.Random) -> None:
    """It has lost this rank's own words, too: what it carried last is what can be judged."""
    roll_call = _machines.RollCall(RANKS, OWN)
    assert roll_call.missing(1000 * MS, 3000 * MS) is None, "it has carried nothing"
    ranks = [rank for rank in range(RANKS) if rank != GONE]
    stops = 1000 + rng.randrange(520, 900)
    waits(roll_call, {rank: range(1000 + rng.randrange(20), stops, 20) for rank in ranks})
    for now in range(stops, 3000, 100):
        assert roll_call.missing(1000 * MS, now * MS) == GONE_BIT, now
    late = 1000 + 4 * (stops - 1000) + 1
    assert roll_call.missing(1000 * MS, late * MS) is None, "a silence of three quarters of the time tells nothing"
    waits(roll_call, {rank: range(late, late + 1) for rank in ranks})
    assert roll_call.missing(1000 * MS, (late + 1) * MS) == GONE_BIT, "the switch is run again"


def test_a_rank_is_judged_by_when_the_switch_last_carried_words(rng: random.Random) -> None:
    """All have come, and the switch stands still after a second; who fell silent before is missing, nobody else."""
    stops = 2000 + rng.randrange(20)
    calls = {rank: range(1000 + rng.randrange(20), stops, 20) for rank in range(RANKS)}
    for times, missing in ((calls, 0), (calls | {GONE: range(1000, 1300, 20)}, GONE_BIT)):
        roll_call = _machines.RollCall(RANKS, OWN)
        waits(roll_call, times)
        for now in range(stops, 3000, 100):
            assert roll_call.missing(1000 * MS, now * MS) == missing, now


def test_who_has_gone_without_calling_is_named_before_who_has_called(rng: random.Random) -> None:
    """All were heard at first; rank 3 ends before it calls; rank 0 has sent the vector, and is not run lately."""
    seq = rng.randrange(1 << 32)
    heard = range(1000 + rng.randrange(20), 3000, 20)
    early = range(1000, 1000 + rng.randrange(100, 1000), 20)
    after = (seq + 1) % (1 << 32)
    roll_call = _machines.RollCall(RANKS, OWN)
    for rank, (every, sends) in {OWN: (heard, after), 0: (early, after), 2: (heard, after), GONE: (early, seq)}.items():
        for at in every:
            roll_call.on_call(rank, sends, at * MS)
    roll_call.on_call(4, after, 2990 * MS)
    missing = roll_call.missing(1000 * MS, 3000 * MS)
    assert missing == GONE_BIT | 0b1
    assert roll_call.to_name(missing, 1000 * MS, seq) == GONE_BIT
    roll_call.on_call(GONE, seq, 2995 * MS)
    assert roll_call.to_name(0b1, 1000 * MS, seq) == 0, "rank 3 is there, and has not called"
    roll_call.on_call(GONE, after, 2996 * MS)
    assert roll_call.to_name(0b1, 1000 * MS, seq) == 0b1, "all have called, and rank 0 is silent"
    assert roll_call.to_name(0b1, 1500 * MS + 1000 * MS, seq) == 0b1
