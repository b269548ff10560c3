"""Faults of the machine that a controller runs on, for schedules: its clock jumps, its disk is full."""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest
from test_live_store import full_disk


class ClockAndDisk:
    """This process's clock and the disk of its job files; each fault says in words what it did."""

    def __init__(self, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rng, self._monkeypatch = rng, monkeypatch
        self._disk = ExitStack()
        self._offset = 0
        real = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: real() + self._offset)

    def _set_clock(self) -> str:
        self._offset = self._rng.randint(-7200, 7200) * 10**9
        return f"clock by {self._offset // 10**9} s"

    def _fill_disk(self) -> str:
        self._free_disk()
        self._disk.enter_context(full_disk(self._monkeypatch))
        return "disk full"

    def _free_disk(self) -> str:
        self._disk.close()
        self._disk = ExitStack()
        return "disk free"
