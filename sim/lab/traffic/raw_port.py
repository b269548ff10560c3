"""Sending and receiving whole Ethernet frames on a host's interface."""

from __future__ import annotations

import fcntl
import socket
import struct
import time
from types import TracebackType
from typing import Self

from scapy.layers.inet import UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet

from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET
from catchment.wire.generated.scapy_layers import Catchment

_ETH_P_ALL = 3
_GET_HARDWARE_ADDRESS = 0x8927
_OUTGOING = 4


class RawPort:
    """A packet socket on one interface; a context manager."""

    def __init__(self, interface: str = "eth0") -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # takes nothing before it is bound
        self._socket.bind((interface, _ETH_P_ALL))
        request = struct.pack("256s", interface.encode())
        address = fcntl.ioctl(self._socket, _GET_HARDWARE_ADDRESS, request)[18:24]
        self.mac = ":".join(f"{byte:02x}" for byte in address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, frame: Packet | bytes) -> None:
        """Put a frame on the wire as it is."""
        self._socket.send(bytes(frame))

    def receive(self, seconds: float) -> bytes | None:
        """The next frame that arrives, or None after `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                frame, address = self._socket.recvfrom(65535)
            except (TimeoutError, BlockingIOError):
                return None
            if address[2] != _OUTGOING:
                return frame
        return None

    def receive_ours(self, seconds: float, gen: int) -> Catchment | None:
        """The next frame of a generation, from our header on, or None after `seconds`."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            frame = self.receive(left)
            if frame is None or len(frame) < HEADER_OFFSET + HEADER_BYTES:
                continue
            packet = Ether(frame)
            if UDP not in packet:  # an ICMP error quotes the beginning of ours
                continue
            if Catchment in packet and packet[Catchment].gen == gen:
                return packet[Catchment]
            # The receiver's own port need not be the one that Scapy knows the header by.
            header = Catchment(bytes(packet[UDP].payload))
            if header.version == 1 and header.gen == gen:
                return header
        return None

    def resolve(self, ip: str, own_ip: str, patience: float = 60.0) -> str:
        """Hardware address of an IPv4 neighbour, asked by ARP twice a second for `patience` seconds.

        Raises:
            TimeoutError: nobody answers.
        """
        question = Ether(src=self.mac, dst="ff:ff:ff:ff:ff:ff") / ARP(
            op="who-has", hwsrc=self.mac, psrc=own_ip, pdst=ip
        )
        end = time.monotonic() + patience
        while (now := time.monotonic()) < end:
            self.send(question)
            deadline = min(now + 0.5, end)
            while (left := deadline - time.monotonic()) > 0:
                frame = self.receive(left)
                answer = Ether(frame) if frame is not None else None
                if answer is not None and ARP in answer and answer[ARP].op == 2 and answer[ARP].psrc == ip:
                    return str(answer[ARP].hwsrc)
        raise TimeoutError(f"{ip} does not answer ARP requests of {own_ip} within {patience:g} s")
