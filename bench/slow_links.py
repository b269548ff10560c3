"""TCP links of this machine that keep to a rate: relays, in front of where the ranks of a ring listen.

What a rank sends in all the parts of a ring shares one link, as the parts of a job share a NIC.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

_PIECE = 8 << 10
_SLACK = 0.02
"""Seconds by which a thread may wake too late and still make up for it."""
_BUFFER = 64 << 10
"""Bytes that wait at a link; more would keep what is urgent waiting behind them."""


class Pace:
    """The rate of a link, which several connections share."""

    def __init__(self, bits_per_second: float) -> None:
        self._rate = bits_per_second
        self._free_at = 0.0
        self._lock = threading.Lock()

    def take(self, size: int) -> None:
        """Wait until so many bytes have passed."""
        with self._lock:
            began = max(self._free_at, time.monotonic() - _SLACK)
            self._free_at = began + 8 * size / self._rate
            ends = self._free_at
        if (left := ends - time.monotonic()) > 0:
            time.sleep(left)


class SlowLink:
    """A relay to an address; what goes there keeps to a pace, what comes back does not. It ends with the exits.

    Attributes:
        address: where it listens.
    """

    def __init__(self, exits: ExitStack, behind: tuple[str, int], pace: Pace) -> None:
        self._behind, self._pace = behind, pace
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self.address: tuple[str, int] = self._listener.getsockname()
        exits.callback(self._end)
        threading.Thread(target=self._accept, daemon=True).start()

    def _end(self) -> None:
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(self._behind)
                except OSError:  # the rank behind does not listen yet: the one in front tries again
                    near.close()
                    continue
                far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._ends += [near, far]
                threading.Thread(target=_pour, args=(near, far, self._pace), daemon=True).start()
                threading.Thread(target=_pour, args=(far, near, None), daemon=True).start()


def _pour(source: socket.socket, sink: socket.socket, pace: Pace | None) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE):
            if pace is not None:
                pace.take(len(data))
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def slow_down(exits: ExitStack, told: Mapping[str, dict[str, Any]], ring: str, bits_per_second: float) -> None:
    """Have what each rank sends in a ring pass a link of a rate; changes `told`, which `rail_lab.deployed` gives."""
    for member in told.values():
        pace = Pace(bits_per_second)
        for part in member["parts"].values():
            if part["rail"] == ring:
                part["next"] = list(SlowLink(exits, tuple(part["next"]), pace).address)
