"""The times at which the thread of a hub leaves the protocol to callers."""

from __future__ import annotations

import pytest

from catchment.host import _machines

US = 1_000
MS = 1_000_000
NOW = 3_600_000 * MS
"""Any time at which nothing was ever begun."""


@pytest.fixture
def callers() -> _machines.Attendance:
    return _machines.Attendance()


def wait_for(callers: _machines.Attendance, begun: int, came: int, left: int) -> None:
    callers.come(begun=begun, now=came)
    assert callers.leave(left)


def test_nobody_is_expected_who_has_never_waited(callers: _machines.Attendance) -> None:
    assert not callers.given(NOW)
    assert not callers.begin(NOW)


def test_callers_have_the_protocol_for_as_long_as_one_waits_and_a_while_longer(callers: _machines.Attendance) -> None:
    callers.come(begun=NOW, now=NOW + 5 * MS)
    callers.come(begun=NOW, now=NOW + 6 * MS)
    assert callers.waiting
    assert callers.given(NOW + 60_000 * MS)
    assert not callers.leave(NOW + 7 * MS)
    assert callers.waiting
    assert callers.leave(NOW + 8 * MS)
    assert not callers.waiting
    assert callers.given(NOW + 9 * MS - 1)
    assert not callers.given(NOW + 9 * MS)


@pytest.mark.parametrize(("late", "expected"), [(0, True), (100 * US - 1, True), (100 * US, False), (20 * MS, False)])
def test_who_waits_at_once_is_expected_the_next_time(callers: _machines.Attendance, late: int, expected: bool) -> None:
    """Who overlaps what it begins with something else is not."""
    wait_for(callers, NOW, NOW + late, NOW + 30 * MS)
    later = NOW + 500 * MS
    assert callers.begin(later) == expected
    assert callers.given(later + 1 * MS - 1) == expected
    assert not callers.given(later + 1 * MS)


def test_who_did_not_come_is_not_expected_the_next_time(callers: _machines.Attendance) -> None:
    wait_for(callers, NOW, NOW, NOW + 1 * MS)
    assert callers.begin(NOW + 500 * MS)
    callers.miss()
    assert not callers.begin(NOW + 600 * MS)


def test_who_has_begun_nothing_since_was_not_missed(callers: _machines.Attendance) -> None:
    wait_for(callers, NOW, NOW, NOW + 1 * MS)
    callers.miss()
    assert callers.begin(NOW + 500 * MS)


@pytest.mark.parametrize(("idle", "rest"), [(0, 1), (1, 1), (3, 3), (8, 8), (5_000, 8)])
def test_the_thread_rests_for_as_long_as_it_had_nothing_to_do(
    callers: _machines.Attendance, idle: int, rest: int
) -> None:
    """One to eight milliseconds, and one where callers do other things before they wait."""
    assert callers.rest(idle * MS) == 1 * MS
    wait_for(callers, NOW, NOW, NOW + 1 * MS)
    assert callers.rest(idle * MS) == rest * MS
    wait_for(callers, NOW, NOW + 1 * MS, NOW + 2 * MS)
    assert callers.rest(idle * MS) == 1 * MS
