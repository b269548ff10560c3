"""A rank that waits says so again and again, as often as its link can bear."""

from __future__ import annotations

import pytest

from catchment.host import _machines

MS = 1_000_000


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
