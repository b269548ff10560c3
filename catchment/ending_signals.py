"""Says which signals end a program: a request to end (SIGTERM), Ctrl-C (SIGINT), a terminal that closes (SIGHUP).

A terminal that closes hangs up twice, by its shell and then by the kernel; where the first one ends a program here, the
second does not cut its clean-up short.  Below nohup hang-ups are ignored from the start, and stay ignored.
"""

from __future__ import annotations

import signal
import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALLED = 128
"""What shells add to the number of a signal for the exit code of what it ended."""


def ending_signals() -> tuple[signal.Signals, ...]:
    """The signals that end this program; SIGHUP is not one where it is ignored."""
    hang_up = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)
    return (signal.SIGTERM, signal.SIGINT, *hang_up)


def call_when_ended(loop: AbstractEventLoop, end: Callable[[], object]) -> None:
    """Have a loop of the main thread call `end` when one of these signals comes."""
    for number in ending_signals():
        if number == signal.SIGHUP:
            signal.signal(number, _hang_up)  # a loop that closes would let the second one kill
        else:
            loop.add_signal_handler(number, end)


@contextmanager
def ended_as_by_ctrl_c() -> Iterator[None]:
    """Have each of these signals raise KeyboardInterrupt in the main thread, as Ctrl-C does."""
    handlers = {signal.SIGTERM: signal.default_int_handler, signal.SIGHUP: _hang_up}
    before = {number: signal.signal(number, handlers[number]) for number in ending_signals() if number in handlers}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # a hang-up has come, and may come again
                signal.signal(number, handler)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have the first of these signals do what Ctrl-C does, and end the program as one that it ended: SIGTERM with 143.

    What cleans up is not cut short by others that follow, Ctrl-C apart. Signals reach the main thread alone: in others
    the block is as without.

    Raises:
        SystemExit: such a signal has come, and everything in the block has cleaned up.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        if not came:
            came.append(number)
            raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in ending_signals() if number != signal.SIGINT}
    try:
        yield
    except KeyboardInterrupt:
        if came:
            raise SystemExit(_SIGNALLED + came[0]) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def held_back(*, even_ctrl_c_again: bool = False) -> Iterator[None]:
    """Put these signals off until the block is through; Ctrl-C that comes again counts at once, unless it may not.

    Signals reach the main thread alone: in others the block is as without.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in pending and not even_ctrl_c_again:
            pending.clear()
            signal.default_int_handler(number, frame)
        pending.append(number)

    before = {number: signal.signal(number, remember) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for put_off in pending:
            signal.raise_signal(put_off)


def _hang_up(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.raise_signal(signal.SIGTERM)
