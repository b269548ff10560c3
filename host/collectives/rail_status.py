"""What tells of the rails of a rank: in the log what changes, and to programs of this machine all of it."""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from catchment.wire.rail_report import RailReport, RankReport, socket_path

_LOG: Final = logging.getLogger("catchment.rails")
_SLOW: Final = 1.0
"""Seconds after which a reader who does not read is left."""
_LOOK: Final = 0.5
"""Seconds between two looks at what has changed."""


class RailStatus:
    """A thread that logs once what becomes of each rail, and answers whoever connects to a Unix socket of this machine.

    What is said there is in catchment/wire/rail_report.py. Where the folder of such sockets cannot be written there is
    none.

    Args:
        report: gives what makes the report, in the thread, until `close`; the thread keeps no rank alive.
        listens: whether there is a socket.

    Attributes:
        path: of the socket; None where there is none.
    """

    def __init__(self, report: Callable[[], Callable[[], RankReport] | None], *, listens: bool = True) -> None:
        self._report = report
        self._pid = os.getpid()
        self._told: dict[str, str] = {}
        self._ends, self._end = socket.socketpair()
        self._socket = _listen() if listens else None
        self.path = None if self._socket is None else Path(self._socket.getsockname())
        self._thread: threading.Thread | None = threading.Thread(target=self._run, name="rail status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; in a forked child only the child's copies of the sockets go."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        forked = self._pid != os.getpid()
        if not forked:
            self._end.send(b"0")  # a forked child may keep this end open
            if thread is not threading.current_thread():  # whose look at the rank may have been the last
                thread.join()
        for one in (self._socket, self._ends, self._end):
            if one is not None:
                one.close()
        if self.path is not None and not forked:
            self.path.unlink(missing_ok=True)

    def _run(self) -> None:
        with selectors.PollSelector() as watched:  # select takes no descriptor above 1023
            for one in (self._ends, self._socket):
                if one is not None:
                    watched.register(one, selectors.EVENT_READ)
            self._look_on(watched)

    def _look_on(self, watched: selectors.BaseSelector) -> None:
        while True:
            ready = [key.fileobj for key, _ in watched.select(_LOOK)]
            if self._ends in ready or (report := self._report()) is None:
                return
            said = report()
            del report
            for rail in said.rails:
                self._tell(said, rail)
            if self._socket in ready:
                self._answer(said)

    def _answer(self, said: RankReport) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):
            reader, _ = self._socket.accept()
            with reader:
                reader.settimeout(_SLOW)
                reader.sendall(said.to_json().encode())

    def _tell(self, said: RankReport, rail: RailReport) -> None:
        state = "down" if rail.state == "probation" else rail.state
        before = self._told.get(rail.name, "up")
        self._told[rail.name] = state
        if state == before:
            return
        what = f"job {said.job or '(no name)'}, rank {said.rank}: rail {rail.name}"
        if state == "up":
            _LOG.warning("%s is used again", what)
        elif rail.joined:
            _LOG.warning("%s is down; its operations go over rail %s", what, rail.carrier)
        else:
            _LOG.warning("%s was never up; operations go on without it", what)


def _listen() -> socket.socket | None:
    path, made = socket_path(), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made.bind(str(path))
        made.listen()
    except OSError:  # not our folder, or its name is too long for a socket
        made.close()
        return None
    made.setblocking(False)
    return made
