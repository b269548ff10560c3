"""Missing sums are asked for in time although no later one has shown that they were lost."""

from __future__ import annotations

from catchment.host import _machines

MS = 1_000_000


def waits(timer: _machines.SilenceTimer, now: int, count: int) -> list[float]:
    """Milliseconds between `now` and each of the next times to ask, nothing coming meanwhile."""
    seen = []
    for _ in range(count):
        seen.append((timer.deadline - now) / MS)
        assert not timer.expired(True, timer.deadline - 1)
        now = timer.deadline
        assert timer.expired(True, now)
        timer.on_asked(now)
    return seen


def test_nothing_is_asked_for_while_nothing_is_missing() -> None:
    timer = _machines.SilenceTimer()
    assert not timer.expired(False, 10**15)
    timer.on_sum(0)
    assert not timer.expired(False, 10**15)
    assert timer.deadline > 10**18, "it must not wake anybody"


def test_silence_begins_with_the_first_vector_and_with_every_sum() -> None:
    timer = _machines.SilenceTimer()
    assert not timer.expired(True, 50 * MS), "the first was sent now"
    timer.on_round_trip(MS // 2)
    timer.on_sum(60 * MS)
    assert waits(timer, 60 * MS, 6) == [1, 2, 4, 8, 8, 8]
    timer.on_sum(200 * MS)
    assert waits(timer, 200 * MS, 2) == [1, 2]


def test_silence_grows_until_a_round_trip_is_known() -> None:
    """Ranks that ask for what is still under way fill a slow link with it, and no answer tells how slow it is."""
    timer = _machines.SilenceTimer()
    assert not timer.expired(True, 0)
    assert waits(timer, 0, 5) == [1, 2, 4, 8, 16]
    timer.on_sum(100 * MS)
    assert waits(timer, 100 * MS, 6) == [32, 64, 128, 256, 500, 500]
    timer.on_round_trip(2 * MS)
    timer.on_sum(3000 * MS)
    assert waits(timer, 3000 * MS, 1) == [2]


def test_sums_that_come_twice_make_a_silence_longer() -> None:
    """What was asked for had been under way; samples without duplicates between them take it back."""
    timer = _machines.SilenceTimer()
    timer.on_round_trip(2 * MS)

    def wait() -> float:
        timer.on_sum(0)
        return float(timer.deadline) / MS

    assert wait() == 2
    seen = []
    for _ in range(9):
        timer.on_duplicate()
        seen.append(wait())
    assert seen == [4, 8, 16, 32, 64, 128, 128, 128, 128]
    timer.on_round_trip(2 * MS)
    assert wait() == 128, "duplicates came since the last sample"
    for left in (64, 32, 16, 8, 4, 2, 2):
        timer.on_round_trip(2 * MS)
        assert wait() == left
    timer.on_duplicate()
    timer.on_loss(0)
    assert wait() == 0.25, "where frames are lost it is an eighth, as ever"


def test_where_frames_were_lost_lately_it_is_shorter() -> None:
    timer = _machines.SilenceTimer()
    timer.on_round_trip(MS // 2)
    timer.on_loss(0)
    timer.on_sum(0)
    assert waits(timer, 0, 7) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 8]
    timer.on_sum(99 * MS)
    assert waits(timer, 99 * MS, 1) == [0.2]
    timer.on_sum(100 * MS)
    assert waits(timer, 100 * MS, 1) == [1], "that was long ago"


def test_what_a_round_trip_has_not_answered_is_not_asked_for() -> None:
    timer = _machines.SilenceTimer()
    timer.on_round_trip(28 * MS)
    timer.on_sum(0)
    assert waits(timer, 0, 5) == [28, 56, 112, 112, 112]
    timer.on_loss(1000 * MS)
    timer.on_sum(1000 * MS)
    assert waits(timer, 1000 * MS, 3) == [3.5, 7, 14]


def test_a_rank_says_that_it_waits_after_two_round_trips_of_a_slow_link() -> None:
    """All answer, and on a slow link the answers would take the place of what they wait for."""
    timer = _machines.SilenceTimer()
    assert timer.call_after(30 * MS) == 30 * MS, "no round trip is known"
    timer.on_round_trip(2 * MS)
    assert timer.call_after(30 * MS) == 30 * MS, "no sooner on a fast link"
    for _ in range(8):
        timer.on_round_trip(100 * MS)
    assert timer.call_after(30 * MS) == 200 * MS
    for _ in range(8):
        timer.on_round_trip(10_000 * MS)
    assert timer.call_after(30 * MS) == 500 * MS, "a rank that is late is not waited for longer"


def test_a_round_trip_that_waited_for_a_late_rank_is_forgotten() -> None:
    timer = _machines.SilenceTimer()
    timer.on_round_trip(10_000 * MS)
    timer.on_sum(0)
    assert waits(timer, 0, 1) == [500], "nothing is lost for longer"
    timer.on_round_trip(MS // 2)
    timer.on_round_trip(10_000 * MS)
    timer.on_sum(0)
    assert waits(timer, 0, 2) == [1, 2]
    for _ in range(8):
        timer.on_round_trip(3 * MS)
    timer.on_sum(0)
    assert waits(timer, 0, 3) == [3, 6, 12]
