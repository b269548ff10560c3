"""What a forked child sees."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from typing import Final

LIMIT: Final = 60
"""Seconds; then a child that hangs is ended."""


def begin_child(body: Callable[[], bool]) -> int:
    """Fork a child that does this; its process id, for `said_yes`."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a handler in Python waits for what hangs
        signal.alarm(LIMIT)
        code = 1
        try:
            code = 0 if body() else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def said_yes(child: int) -> bool:
    """Whether what a child did was true; it has ended, whatever became of it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_child(body: Callable[[], bool]) -> bool:
    """Whether a forked child that does this says yes."""
    return said_yes(begin_child(body))
