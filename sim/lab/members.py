"""The members of a run: processes in the hosts' namespaces, or threads when there is no network."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from catchment.checkout import ROOT
from catchment.sim.lab import events
from catchment.sim.lab.errors import LabError

Deliver = Callable[[str, dict[str, Any]], None]
ENDED = "ended"
_GRACE = 2.0


class Member(Protocol):
    """One worker, the optimizer node, or the reference. Its events go to the `deliver` it was made with."""

    @property
    def name(self) -> str:
        """Host name, for messages."""

    def go(self) -> None:
        """Begin the run."""

    def kill(self) -> None:
        """End it as a crash would."""

    def stop(self) -> None:
        """End it, whatever it is doing."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run as a member, and where its standard error goes."""

    argv: tuple[str, ...]
    log: Path


def module_command(module: str, arguments: tuple[str, ...], log: Path) -> Command:
    """A Python module of this repository as a member."""
    return Command((sys.executable, "-m", module, *arguments), log)


def member_environment() -> dict[str, str]:
    """Environment of a member's process: this repository first on the path, one thread for every library."""
    path = os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def start_here(argv: list[str], **options: Any) -> subprocess.Popen[str]:
    """A member's process on this machine, in no namespace of its own; `options` as for Popen."""
    return subprocess.Popen(argv, env=member_environment(), cwd=ROOT, **options)


class ProcessMember:
    """A member in a process of its own, told apart by name and pid."""

    def __init__(
        self, name: str, command: Command, popen: Callable[..., subprocess.Popen[str]], deliver: Deliver
    ) -> None:
        """Start it with `popen(argv, stdin=..., ...)`; its events, and at last ENDED with a reason, go to `deliver`."""
        self.name = name
        self._command = command
        self._deliver = deliver
        with command.log.open("w") as log:
            self._process = popen(
                list(command.argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"events of {name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def go(self) -> None:
        """Let it begin; one that has died meanwhile is reported by ENDED."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(events.GO + "\n")
            self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL; ENDED is reported as for any other end."""
        self._process.kill()

    def stop(self) -> None:
        """Ask it to end, then kill it."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(_GRACE)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                event = events.parse(line)
            except LabError as error:
                event = {"event": events.ERROR, "kind": "LabError", "text": str(error)}
            self._deliver(self.name, event)
        self._deliver(self.name, {"event": ENDED, "reason": self._reason()})

    def _reason(self) -> str:
        code = self._process.wait()
        if code == 0:
            return ""
        if code < 0:
            return f"process {self.pid} was ended by {signal.Signals(-code).name}"
        return f"process {self.pid} ended with code {code}{_last_words(self._command.log)}"


def _last_words(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return f": {lines[-1].strip()[:300]} (see {log})" if lines else ""


class ThreadMember:
    """A member in a thread: `body(tell)` returns the facts of its last event."""

    def __init__(self, name: str, body: Callable[[Callable[..., None]], dict[str, Any]], deliver: Deliver) -> None:
        """Ready at once."""
        self.name = name
        self._body = body
        self._deliver = deliver
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._tell(events.READY)

    def go(self) -> None:
        """Start the thread."""
        self._thread.start()

    def kill(self) -> None:
        """Refuse: a thread cannot be killed."""
        raise LabError(f"{self.name} is a thread of this process: nothing can kill it alone")

    def stop(self) -> None:
        """Threads end when their fabric fails; nothing to do here."""

    def _tell(self, event: str, **facts: Any) -> None:
        self._deliver(self.name, {"event": event, **facts})

    def _run(self) -> None:
        try:
            self._tell(events.DONE, **self._body(self._tell))
        except Exception as error:  # the thread's main: whatever it was becomes an event
            self._tell(events.ERROR, kind=type(error).__name__, text=str(error))
        self._tell(ENDED, reason="")
