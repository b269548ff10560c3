"""The ports of a switch with shared memory, and what comes to peers that it lets in."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catchment.softswitch import native

PORTS = (1, 2, 3, 4)
PATIENCE = 60.0


def inside(path: Path) -> Any:
    """A peer that asks to be let in."""
    return native.runtime().InsidePort(str(path), int(PATIENCE * 1000))


def take(port: Any, count: int) -> list[bytes]:
    """So many frames, or what comes until none does for a minute."""
    frames: list[bytes] = []
    while len(frames) < count and (more := port.receive(PATIENCE)):
        frames += more
    return frames


def until(condition: Callable[[], bool]) -> None:
    """Wait for it, a minute at most."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
