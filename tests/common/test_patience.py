"""A waiter spins, yields and sleeps in its time, on a clock of the test's own."""

from __future__ import annotations

import os
from typing import Any

import pytest
from foundations import common
from hypothesis import given
from hypothesis import strategies as st

US = 1_000
MS = 1_000 * US
SPIN, YIELD, SLEEP = common.Waiting.SPIN, common.Waiting.YIELD, common.Waiting.SLEEP
TIMES = {
    "spin": 50 * US,
    "yield_after": 2 * US,
    "late_yield": 500 * US,
    "oversubscribed_for": 100 * MS,
    "oversubscribed_most": 3200 * MS,
    "spin_always": 0,
}


@pytest.fixture
def patience() -> Any:
    """A patience with the settings of a packet thread."""
    return common.Patience(**TIMES)


@pytest.mark.parametrize(
    ("elapsed", "expected"),
    [(0, SPIN), (2 * US - 1, SPIN), (2 * US, YIELD), (50 * US - 1, YIELD), (50 * US, SLEEP), (1000 * MS, SLEEP)],
)
def test_a_waiter_spins_then_yields_then_sleeps(patience: Any, elapsed: int, expected: Any) -> None:
    found = 7 * MS
    assert patience.next(found, found + elapsed) == expected


def test_without_time_to_spin_a_waiter_sleeps_at_once() -> None:
    assert common.Patience(**TIMES | {"spin": 0}).next(5, 5) == SLEEP


def test_a_late_yield_ends_spinning_for_a_while(patience: Any) -> None:
    before, after = 10 * MS, 10 * MS + 500 * US + 1
    patience.yielded(before, after)
    end = after + 100 * MS
    assert patience.next(end - 1, end - 1) == SLEEP
    assert patience.next(end, end) == SPIN


def test_a_yield_in_time_changes_nothing(patience: Any) -> None:
    patience.yielded(10 * MS, 10 * MS + 500 * US)
    assert patience.next(11 * MS, 11 * MS) == SPIN


def late(patience: Any, at: int) -> int:
    """A late yield that ends at a time; how long the waiter then sleeps without spinning."""
    patience.yielded(at - 501 * US, at)
    slept = 0
    while patience.next(at + slept, at + slept) == SLEEP:
        slept += 10 * MS
    return slept


def test_who_spins_again_and_is_late_again_sleeps_for_longer_and_longer(patience: Any) -> None:
    now, periods = 10 * MS, []
    for _ in range(8):
        periods.append(late(patience, now))
        now += periods[-1] + 1 * MS
    assert periods == [100 * MS * 2**n for n in (0, 1, 2, 3, 4, 5, 5, 5)]


def test_who_has_spun_for_as_long_as_it_slept_sleeps_as_the_first_time(patience: Any) -> None:
    at = 10 * MS
    assert late(patience, at) == 100 * MS
    assert late(patience, at := at + 199 * MS) == 200 * MS
    assert late(patience, at := at + 399 * MS) == 400 * MS
    assert late(patience, at + 800 * MS) == 100 * MS


def test_late_yields_of_threads_that_began_together_count_once(patience: Any) -> None:
    assert late(patience, 10 * MS) == 100 * MS
    assert late(patience, 10 * MS + 1) == 100 * MS
    assert late(patience, 60 * MS) == 100 * MS


@given(st.lists(st.tuples(st.integers(0, 2 * MS), st.integers(0, 300 * MS)), max_size=30), st.integers(0, 60 * US))
def test_a_waiter_sleeps_while_any_late_yield_is_recent(yields: list[tuple[int, int]], elapsed: int) -> None:
    patience = common.Patience(**TIMES)
    now = until = sleeps = 0
    for took, pause in yields:
        patience.yielded(now, now + took)
        now += took
        if took > TIMES["late_yield"]:
            if now >= until + sleeps:
                sleeps = TIMES["oversubscribed_for"]
            elif now >= until:
                sleeps = min(2 * sleeps, TIMES["oversubscribed_most"])
            until = now + sleeps
        now += pause
        expected = SPIN if elapsed < 2 * US else YIELD if elapsed < 50 * US else SLEEP
        if now < until:
            expected = SLEEP
        assert patience.next(now - elapsed, now) == expected


def test_time_may_begin_at_zero(patience: Any) -> None:
    assert patience.next(0, 0) == SPIN


def test_who_yields_notices_by_the_clock_that_it_was_late(patience: Any) -> None:
    """The thread has the processor back 600 us after the time that it gave, or at once."""
    patience.give_way(common.now() - 600 * US)
    now = common.now()
    assert patience.next(now, now) == SLEEP
    never_late = common.Patience(**TIMES | {"late_yield": 10**18})
    never_late.give_way(now)
    assert never_late.next(now, now) == SPIN


def test_the_settings_of_a_packet_thread_of_the_switch() -> None:
    assert common.switch_patience() == TIMES


@pytest.mark.parametrize("spin", [0, 1, 7 * US])
def test_a_worker_yields_from_the_first_look_on(spin: int) -> None:
    assert common.reducer_patience(spin) == TIMES | {"spin": spin, "yield_after": 0}


@pytest.mark.parametrize("spin", [0, 1, 7 * US])
def test_a_rank_gives_others_time_for_a_window_and_yields_again_sooner_than_a_worker(spin: int) -> None:
    settings, worker = common.collective_patience(spin, False), common.reducer_patience(spin)
    assert settings == worker | {"late_yield": 1 * MS, "oversubscribed_for": 2 * MS, "oversubscribed_most": 1600 * MS}
    assert settings["oversubscribed_for"] < worker["oversubscribed_for"]


@pytest.mark.parametrize("spin", [0, 7 * US, 50 * US, 200 * US])
def test_a_rank_with_a_processor_for_itself_spins_before_it_yields_and_on_a_busy_machine_too(spin: int) -> None:
    alone = min(spin, 50 * US)
    settings = common.collective_patience(spin, True)
    assert settings == common.collective_patience(spin, False) | {"yield_after": alone, "spin_always": alone}
    patience = common.Patience(**settings)
    found = 7 * MS
    assert patience.next(found, found + alone) == (YIELD if spin > alone else SLEEP)
    patience.yielded(found, found + 1 * MS + 1)
    now = found + 2 * MS
    assert patience.next(now - alone, now) == SLEEP
    if alone:
        assert patience.next(now - alone + 1, now) == SPIN


def test_who_wants_a_lock_spins_where_its_owner_runs_and_yields_where_he_may_need_the_processor() -> None:
    running, perhaps_not = (common.Patience(**common.lock_patience(own)) for own in (True, False))
    waits = (0, 2 * US - 1, 2 * US, 10 * US - 1, 10 * US, 200 * US - 1, 200 * US, 1 * MS - 1, 1 * MS)
    assert [running.next(0, wait) for wait in waits] == [SPIN] * 6 + [SLEEP] * 3
    assert [perhaps_not.next(0, wait) for wait in waits] == [SPIN] * 2 + [YIELD] * 6 + [SLEEP]
    perhaps_not.yielded(0, 1 * MS + 1)
    now = 101 * MS
    assert [perhaps_not.next(now - wait, now) for wait in waits] == [SPIN] * 4 + [SLEEP] * 5


def test_a_waiter_knows_whether_a_yield_was_late_not_long_ago(patience: Any) -> None:
    assert not patience.oversubscribed(0)
    patience.yielded(0, 501 * US)
    last = 501 * US + 100 * MS
    assert [patience.oversubscribed(now) for now in (501 * US, last - 1, last)] == [True, True, False]


def test_who_spins_keeps_its_processor_and_who_yields_may_be_late(patience: Any) -> None:
    now = common.now() - 600 * US
    patience.pass_time(SPIN, now)
    assert patience.next(now, now) == SPIN
    patience.pass_time(YIELD, now)
    assert patience.next(common.now(), common.now()) == SLEEP


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_who_goes_to_a_processor_goes_on_there_and_may_come_back() -> None:
    processors = os.sched_getaffinity(0)
    first, second, *_ = sorted(processors)
    assert common.allowed_processors() == sorted(processors)
    try:
        for here, there in ((first, second), (second, first)):
            os.sched_setaffinity(0, {here})
            assert common.allowed_processors() == [here]
            assert common.go_to_processor(there) == (False, here)
            assert common.go_to_processor(max(processors) + 1) == (False, here)
            assert os.sched_getaffinity(0) == {here}
            os.sched_setaffinity(0, {first, second})
            # The kernel may take it on from there at once.
            assert any(common.go_to_processor(there) == (True, there) for _ in range(100))
            assert os.sched_getaffinity(0) == {first, second}
    finally:
        os.sched_setaffinity(0, processors)


def test_a_process_knows_the_processors_that_it_may_run_on() -> None:
    assert common.processors() == len(os.sched_getaffinity(0))


class Peer:
    """A waiter with the settings of a shared-memory peer and a clock that the test moves."""

    def __init__(self) -> None:
        self.patience = common.AdaptivePatience(
            least_spin=1 * US, most_spin=50 * US, yield_after=2 * US, late_yield=500 * US, few_sleeps=4, many_sleeps=16
        )
        self.now = 0
        self.yields = 0

    def waits(self, after: float = float("inf"), time_slice: int = 0) -> tuple[bool, int]:
        """Something comes `after` so many nanoseconds: whether spinning finds it, and how long the peer spun."""
        begin = self.now
        found, self.now, self.yields = self.patience.spin_until(
            begin, 10, time_slice, lambda time: time - begin >= after
        )
        return found, self.now - begin

    def sleeps(self, duration: int) -> None:
        """The peer sleeps and is woken."""
        self.now += duration
        self.patience.woken(self.now)


def test_what_is_there_is_found_without_reading_the_clock() -> None:
    assert Peer().waits(0) == (True, 0)


def test_what_comes_soon_is_found_by_spinning() -> None:
    peer = Peer()
    found, spun = peer.waits(30 * US)
    assert found and 30 * US <= spun < 31 * US
    assert peer.yields > 0


def test_a_peer_that_spins_for_less_than_two_microseconds_does_not_yield() -> None:
    peer = Peer()
    assert peer.waits(1 * US)[0] and peer.yields == 0


def test_spinning_in_vain_makes_it_short_until_some_sleeps_have_passed() -> None:
    peer = Peer()
    found, spun = peer.waits()
    assert not found and 50 * US <= spun < 51 * US
    spins = [0]
    while spins[-1] < 50 * US:
        peer.sleeps(5 * US)
        spins.append(peer.waits()[1])
        assert len(spins) < 20, "spinning was not tried again"
    assert all(spun < 2 * US for spun in spins[:6])
    assert sorted(spins) == spins


def test_spinning_is_tried_more_and_more_seldom() -> None:
    peer = Peer()
    gaps: list[int] = []
    sleeps = 0
    while len(gaps) < 6:
        if peer.waits()[1] >= 50 * US:
            gaps.append(sleeps)
            sleeps = 0
        peer.sleeps(5 * US)
        sleeps += 1
    doublings = gaps[-1] - 16
    assert gaps == [0, *(few + doublings for few in (4, 8, 16, 16, 16))]


def test_a_find_resets_how_seldom() -> None:
    peer = Peer()
    for _ in range(200):
        peer.waits()
        peer.sleeps(5 * US)
    while not peer.waits(0.5 * US)[0]:
        peer.sleeps(5 * US)
    while peer.waits()[1] < 50 * US:  # as long as it may, in vain: gives up with few sleeps again
        peer.sleeps(5 * US)
    short = 0
    peer.sleeps(5 * US)
    while peer.waits()[1] < 2 * US:
        peer.sleeps(5 * US)
        short += 1
    assert short == 1 + 4  # the first follows a sleep that is too long to count


def test_a_late_yield_makes_the_peer_sleep_at_once() -> None:
    peer = Peer()
    found, spun = peer.waits(time_slice=600 * US)
    assert not found and peer.yields == 1 and spun >= 600 * US
    peer.sleeps(5 * US)
    assert peer.waits()[1] < 2 * US


def test_what_comes_during_a_late_yield_is_found() -> None:
    assert Peer().waits(400 * US, time_slice=600 * US)[0]


def test_long_sleeps_halve_the_time_to_spin() -> None:
    peer = Peer()
    peer.waits(30 * US)
    peer.sleeps(60 * US)
    for expected in (25 * US, 12.5 * US, 6.25 * US):
        spun = peer.waits()[1]
        assert expected <= spun < expected + US
        peer.sleeps(60 * US)
