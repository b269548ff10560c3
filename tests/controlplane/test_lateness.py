"""A controller that was stopped for a while expels nobody for it, and still notices who is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from catchment.controlplane.controller import members
from catchment.controlplane.controller.members import Members
from catchment.controlplane.controller.roster import Presence, Roster
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.controller.under_way import UnderWay

TIMING = Timing()
HOSTS = ("w0", "w1", "w2")


class Clock:
    """Time that only passes while the controller waits: as long as it asked for, and as much longer as it is stopped.

    Args:
        stops: for each wait, the seconds that the controller is stopped after it.
        roster: whose living members beat at every wait that the controller is not stopped in.
        dead: who never beats.
    """

    def __init__(self, stops: Iterator[float], roster: Roster, dead: set[str]) -> None:
        self.now = 1000.0
        self._stops, self._roster, self._dead = stops, roster, dead

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        stop = next(self._stops, None)
        if stop is None:
            raise asyncio.CancelledError
        self.now += seconds + stop
        for host in HOSTS if not stop else ():
            if host not in self._dead:
                self._roster.beat(host, 1, self.now)


def run(monkeypatch: pytest.MonkeyPatch, stops: list[float], dead: set[str]) -> set[str]:
    """The members that were lost."""
    roster = Roster(HOSTS, 1, silence=TIMING.silence, reunion=TIMING.reunion)
    clock = Clock(iter(stops), roster, dead)
    for host in HOSTS:
        roster.join(host, b"", clock.now)
    watch: Any = SimpleNamespace(
        roster=roster, forget_stall=lambda now: None, announce=lambda: None, trouble=lambda *_: None,
        record=SimpleNamespace(group=SimpleNamespace(name="train")),
    )  # fmt: skip
    controller: Any = SimpleNamespace(
        settings=SimpleNamespace(timing=TIMING), jobs={"train": watch}, under_way=UnderWay()
    )
    watched = Members(controller)

    async def lose(*_: object) -> None:
        pass

    async def look() -> None:
        monkeypatch.setattr(watched, "_lose", lose)
        await watched.look_for_losses()

    monkeypatch.setattr(members, "time", clock)
    monkeypatch.setattr(members, "asyncio", SimpleNamespace(sleep=clock.sleep, TaskGroup=asyncio.TaskGroup))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(look())
    return {host for host, seat in roster.seats.items() if seat.presence is Presence.LOST}


def test_a_pause_of_the_controller_expels_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, [0.0] * 5 + [3.0] + [0.0] * 5 + [20.0, 20.0] + [0.0] * 40, set()) == set()


def test_who_is_gone_is_noticed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = int(TIMING.silence / TIMING.check) + 2
    assert run(monkeypatch, [0.0] * 5 + [3.0] + [0.0] * (looks - 10), {"w1"}) == set()
    assert run(monkeypatch, [0.0] * 5 + [3.0] + [0.0] * looks, {"w1"}) == {"w1"}
