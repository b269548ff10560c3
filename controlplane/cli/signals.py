"""Signals as something to select() on."""

from __future__ import annotations

import os
import signal


def wake_up_on(*numbers: signal.Signals) -> int:
    """A descriptor that becomes readable when one of these signals comes; the signals do nothing else any more."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer)
    for number in numbers:
        signal.signal(number, lambda *_: None)
    return reader
