"""A process that runs another one's switch program: `CallerProcess` for tests, and what it starts.

    python caller_process.py OWNER DESCRIPTOR

It answers pickled calls of `_softswitch.Caller` until its input ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from typing import Any, Self

from catchment.softswitch.inprocess import Switch

Left = list[tuple[int, bytes]]


class CallerProcess:
    """Not a fork: it maps the memory, and opens the program, by itself."""

    def __init__(self, switch: Switch, *, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = switch.dataplane.state_descriptor()
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(os.getpid()), str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.refusal: str | None = self.answer()

    def ask(self, method: str, *arguments: object) -> None:
        """Start a call; `answer` waits for its end."""
        assert self.process.stdin is not None
        pickle.dump((method, arguments), self.process.stdin)
        self.process.stdin.flush()

    def answer(self) -> Any:
        """What the call returned."""
        assert self.process.stdout is not None
        return pickle.load(self.process.stdout)

    def inject(self, port: int, frame: bytes) -> tuple[str, Left, list[str]]:
        """The outcome, what left, and lines of the log."""
        self.ask("inject", port, frame)
        outcome, left, lines = self.answer()
        return outcome, left, lines

    def kill(self) -> None:
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def main() -> None:
    """Answer calls."""
    from catchment.softswitch import native

    out = sys.stdout.buffer

    def say(what: object) -> None:
        pickle.dump(what, out)
        out.flush()

    try:
        caller = native.runtime().Caller(int(sys.argv[1]), int(sys.argv[2]))
    except ValueError as error:
        say(str(error))
        return
    say(None)
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            say(getattr(caller, method)(*arguments))
        except MemoryError as error:
            say(type(error).__name__)


if __name__ == "__main__":
    main()
