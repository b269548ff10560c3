"""An ordinary UDP socket in the place of a network interface: what any program on a host may send."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from scapy.packet import Packet

from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.wire.generated.constants import HEADER_OFFSET


class UserPort(RawPort):
    """Sends what follows the UDP header of each frame to the switch; a context manager.

    Args:
        ip: own address.
        switch: the switch's address and UDP port.

    Attributes:
        port: the UDP port that the kernel chose.
    """

    def __init__(self, ip: str, switch: tuple[str, int]) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((ip, 0))
        self._socket.connect(switch)
        self.port = int(self._socket.getsockname()[1])
        self.mac = "00:00:00:00:00:00"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, frame: Packet | bytes) -> None:
        """Send a frame's payload; the kernel writes the addresses."""
        self._socket.send(bytes(frame)[HEADER_OFFSET:])
