"""A work of several operations: it ends with the last of them, and its timeout is for all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest

from catchment.host.collectives import CollectiveError, Work
from catchment.host.torch.distributed import work as module
from catchment.host.torch.distributed.work import Completions, SwitchWork


class Clock:
    """Time that passes while somebody waits."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Part:
    """An operation that ends at some time, or fails then."""

    statistics = SimpleNamespace(any_saturated=False)

    def __init__(self, clock: Clock, end: float, failure: str = "") -> None:
        self.operation = f"operation until {end}"
        self._clock, self._end, self._failure = clock, end, failure

    def done(self) -> bool:
        return self._clock.now >= self._end

    def wait(self, timeout: float | None = None) -> None:
        in_time = timeout is None or self._end <= self._clock.now + timeout
        self._clock.now = max(self._clock.now, self._end if in_time else self._clock.now + (timeout or 0.0))
        if not in_time:
            raise TimeoutError(f"not after {timeout} s")
        if self._failure:
            raise CollectiveError(self._failure, kind="mismatch")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(module, "monotonic", made.monotonic)
    return made


def made_of(parts: Sequence[Part]) -> SwitchWork:
    """A work of such operations, with nothing to do behind them."""
    return SwitchWork(cast("Sequence[Work]", parts), [], None, lambda error: error, Completions())


def test_the_timeout_is_for_all_operations_together(clock: Clock) -> None:
    work = made_of([Part(clock, end) for end in (0.75, 1.5, 2.25)])
    with pytest.raises(TimeoutError, match=r"until 1\.5 is not done after 1\.0 s; it goes on"):
        work.wait(timedelta(seconds=1))
    assert clock.now == 1.0
    assert not work.is_completed()
    assert work.wait(timedelta(seconds=1.25)) is True


def test_a_failed_operation_takes_none_of_the_time_of_the_others(clock: Clock) -> None:
    work = made_of([Part(clock, 0.75, "refused"), Part(clock, 1.5)])
    with pytest.raises(TimeoutError):
        work.wait(timedelta(seconds=1))
    with pytest.raises(CollectiveError, match="refused"):
        work.wait(timedelta(seconds=0.5))
    assert clock.now == 1.5


def test_the_first_failure_is_raised_when_all_have_ended(clock: Clock) -> None:
    work = made_of([Part(clock, 1.0), Part(clock, 2.0, "first"), Part(clock, 3.0, "second"), Part(clock, 4.0)])
    with pytest.raises(CollectiveError, match="first"):
        work.wait()
    assert clock.now == 4.0
    assert str(work.exception()) == "first"
