"""Waiting for what another process does."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Look again and again, for a minute at most.

    Raises:
        AssertionError: it did not come true; the message says `what`.
    """
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.01)
