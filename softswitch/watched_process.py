"""A process that says on its output when it is ready, and whose end is an event."""

from __future__ import annotations

import os
import queue
import subprocess
from collections.abc import Callable, Mapping, Sequence
from io import FileIO
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Self

from catchment.softswitch.process_output import ProcessOutput

_QUOTED_LINES = 15


class WatchedProcess:
    """A running process, from the moment it says that it is ready.

    Args:
        command: program and arguments.
        name: what messages call it.
        is_ready: whether a line of its output says that it is ready.
        error: the exception to raise.
        timeout: seconds to wait for that line.
        log: file that takes its output; without one the last lines are kept in memory.
        environment: of the process; this one's when left out.

    Raises:
        error: it ended, or was not ready in time; quotes the end of what it wrote.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        is_ready: Callable[[str], bool],
        error: type[Exception],
        timeout: float = 240.0,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._is_ready = is_ready
        self._error = error
        self._ready = False
        self._said: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # the ready line; None: it ended
        taken = None if log is None else log.open("wb", buffering=0)
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=None if environment is None else dict(environment),
                # Ctrl-C is for the owner, which then ends us in order. A session would do that, too, but Linux gives
                # each session a share of the processors (autogroup), and one that sleeps much between busy ones was
                # seen not to be run for seconds.
                process_group=0,
            )
        except OSError as failure:
            if taken is not None:
                taken.close()
            raise error(f"{name} does not start: {failure}") from None
        assert isinstance(self._process.stdout, FileIO)
        self._output = ProcessOutput(self._process.stdout, taken, self._look)
        self._reader = Thread(target=self._follow, name=f"output of {name}", daemon=True)
        self._reader.start()
        try:
            self.ready_line = self._wait_ready(timeout)
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def output(self) -> str:
        """The last lines that it has written before this call."""
        return "\n".join(self._output.lines)

    def catch_up(self) -> None:
        """Bring its log file up to what it has written before this call."""
        self._output.catch_up()

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def end_descriptor(self) -> int:
        """A descriptor that becomes readable when the process ends; the caller closes it."""
        return os.pidfd_open(self._process.pid)

    def check(self) -> None:
        """Make sure that it runs.

        Raises:
            error: it ended; quotes the end of what it wrote.
        """
        if not self.is_alive():
            raise self._error(f"{self.name} ended with code {self._process.returncode}:\n{self._tail()}")

    def stop(self, grace: float = 5.0) -> int:
        """End it (SIGTERM, after `grace` seconds SIGKILL) and return its exit code; again: the same code."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(grace)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(1.0)
        return self._process.returncode

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _follow(self) -> None:
        self._output.follow()
        self._said.put(None)

    def _look(self, line: str) -> None:
        if not self._ready and self._is_ready(line):
            self._ready = True
            self._said.put(line)

    def _wait_ready(self, timeout: float) -> str:
        try:
            line = self._said.get(timeout=timeout)
        except queue.Empty:
            raise self._error(f"{self.name} is not ready after {timeout:g} s:\n{self._tail()}") from None
        if line is None:
            code = self._process.wait()
            raise self._error(f"{self.name} ended with code {code} at its start:\n{self._tail()}")
        return line

    def _tail(self) -> str:
        lines = self._output.lines[-_QUOTED_LINES:]
        return "\n".join(f"  {line}" for line in lines) or "  (it wrote nothing)"
