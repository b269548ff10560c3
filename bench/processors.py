"""How busy the processors of the machine are while something runs, and how far apart."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Self, final

from catchment.checkout import NATIVE

HAND_OVERS = NATIVE / "bench" / "hand-overs"
_TRIPS = 20_000


@final
class Busy:
    """Adds up, over all stretches that it is on, the time of all processors, and that in which they did not idle.

    The kernel counts hundredths of a second: short stretches tell by their sum only.
    """

    def __init__(self) -> None:
        self._worked = self._whole = 0

    def __enter__(self) -> Self:
        self._before = _ticks()
        return self

    def __exit__(self, *_: object) -> None:
        worked, whole = (after - before for after, before in zip(_ticks(), self._before, strict=True))
        self._worked += worked
        self._whole += whole

    @property
    def share(self) -> float:
        """The share of the processors' time in which they worked; not a number before the first tick."""
        return self._worked / self._whole if self._whole else float("nan")


def round_trip() -> float:
    """Seconds that a word takes from one processor to another and back; not a number on a machine with one.

    On a virtual machine this changes from one second to the next, with the places that its host gives the processors,
    and what crosses between ranks takes as much longer.
    """
    if len(os.sched_getaffinity(0)) < 2:
        return float("nan")
    command = [str(HAND_OVERS), "word", "1", str(_TRIPS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["seconds"])


def _ticks() -> tuple[int, int]:
    """Hundredths of a second of all processors since the machine started: at work, and in all."""
    user, nice, system, idle, waiting, *others = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    worked = user + nice + system + sum(others)
    return worked, worked + idle + waiting
