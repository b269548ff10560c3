"""Whole Ethernet frames on a shared-memory port: `RawPort` for Scapy without an interface, and without root."""

from __future__ import annotations

import time
from collections import deque
from os import PathLike
from types import TracebackType
from typing import Self

from scapy.packet import Packet

from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.softswitch.shm import Port


class ShmRawPort(RawPort):
    """A port of the switch as its peer; a context manager.

    Args:
        path: the socket that the switch was started with, --port N=shm:PATH.
        mac: own hardware address.
        timeout: seconds to wait for the switch.

    Raises:
        softswitch.shm.ShmError: it cannot be attached.
    """

    def __init__(self, path: str | PathLike[str], *, mac: str, timeout: float = 5.0) -> None:
        self._port = Port.attach(path, timeout=timeout)
        self._waiting: deque[bytes] = deque()
        self.mac = mac

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._port.close()

    def send(self, frame: Packet | bytes) -> None:
        """Put a frame on the ring as it is."""
        self._port.send(bytes(frame))

    def receive(self, seconds: float) -> bytes | None:
        """The next frame that arrives, or None after `seconds`."""
        deadline = time.monotonic() + seconds
        while not self._waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            self._waiting.extend(self._port.receive(timeout=left))
        return self._waiting.popleft()
