"""What a process writes, line by line."""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Callable
from io import FileIO
from threading import Lock
from typing import Final

_KEPT_LINES: Final = 200
_MOST_IN_A_PIPE: Final = 1 << 20
"""Bytes; Linux lets nobody but root have a pipe that holds more."""


class ProcessOutput:
    """The reading end of a process's pipe.

    One thread runs `follow`. Whoever wants to know what the process said calls `catch_up` first, from any thread: a
    process that answers somebody has written its line by then, but the thread that follows may not have read it yet.

    Args:
        pipe: unbuffered; `follow` closes it when the process and its children have closed theirs.
        log: unbuffered; takes all of it, but what its disk has no room for, and is closed with the pipe.
        on_line: called for each line, by whichever thread takes it.
    """

    def __init__(self, pipe: FileIO, log: FileIO | None, on_line: Callable[[str], None]) -> None:
        self._pipe = pipe
        os.set_blocking(pipe.fileno(), False)
        self._log = log
        self._on_line = on_line
        self._taking = Lock()
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._begun = b""  # a line that is not whole yet
        self._ended = False
        self._gaps = False  # the log file has not taken all

    @property
    def lines(self) -> list[str]:
        """The last lines, those included that nobody has read yet."""
        self.catch_up()
        with self._taking:
            return list(self._lines)

    def follow(self) -> None:
        """Take what the process writes until nobody can write any more."""
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        while not self._ended:
            poll.poll()
            self.catch_up()
        with self._taking:
            self._pipe.close()
            if self._log is not None:
                self._log.close()

    def catch_up(self) -> None:
        """Take what the process has written before this call: `lines` and the log file have it then."""
        with self._taking:
            if self._ended:
                return
            # One read, so that a process which never stops writing holds nobody here.
            taken = self._pipe.read(_MOST_IN_A_PIPE)
            if taken is None:
                return
            if self._log is not None:
                self._write(self._log, taken)
            *whole, self._begun = (self._begun + taken).split(b"\n")
            if not taken:
                self._ended = True
                whole = [self._begun] if self._begun else []
            for raw in whole:
                line = raw.decode(errors="replace")
                self._lines.append(line)
                self._on_line(line)

    def _write(self, log: FileIO, taken: bytes) -> None:
        """Write what can be written: a process whose pipe nobody reads any more would stand still with its disk."""
        left = memoryview(taken)
        try:
            while left:
                left = left[log.write(left) :]
        except OSError as error:
            if not self._gaps:
                self._gaps = True
                self._lines.append(f"({len(left)} bytes and more are not in the log file: {error.strerror})")
