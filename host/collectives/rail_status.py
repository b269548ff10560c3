"""What tells `catchment rails show` of this machine how the rails of a rank are (catchment/wire/rail_report.py)."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from catchment.wire.rail_report import RankReport, socket_path

_SLOW = 1.0
"""Seconds after which a reader who does not read is left."""


class RailStatus:
    """A thread that answers whoever connects to a Unix socket of this machine.

    Where the folder of such sockets cannot be written there is none, and nobody is told.

    Args:
        report: gives what makes the report, in the thread, until `close`; the thread keeps no rank alive.

    Attributes:
        path: of the socket; None where there is none.
    """

    def __init__(self, report: Callable[[], Callable[[], RankReport] | None]) -> None:
        self._report = report
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None
        self.path: Path | None = socket_path()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._socket.bind(str(self.path))
            self._socket.listen()
        except OSError:  # not our folder, or its name is too long for a socket
            self._socket.close()
            self.path = None
            return
        self._thread = threading.Thread(target=self._run, name="rail status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread; in a forked child only the child's copy of the socket goes."""
        if self._pid != os.getpid():
            self._socket.close()
            return
        if self._thread is None:
            return
        self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if self._thread is not threading.current_thread():  # whose look at the rank may have been the last
            self._thread.join()
        self._thread = None
        self._socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _run(self) -> None:
        while True:
            try:
                reader, _ = self._socket.accept()
            except OSError:
                return
            with reader, contextlib.suppress(OSError):
                reader.settimeout(_SLOW)
                if (report := self._report()) is None:
                    return
                reader.sendall(report().to_json().encode())
                del report
