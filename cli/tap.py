"""Packet sockets that listen on interfaces, of this network namespace or of a host's."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from catchment.controlplane.diagnosis.pcapng import INBOUND, OUTBOUND
from catchment.controlplane.errors import ControlPlaneError

_CLONE_NEWNET = 0x40000000
_ETH_P_ALL = 3
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_BUFFER = 32 << 20
_LONGEST = 65535
_SIOCETHTOOL = 0x8946
_GET_CHECKSUMS, _SET_CHECKSUMS = 0x16, 0x17


class CaptureError(ControlPlaneError):
    """Nothing can be captured there; says why."""


@dataclass(frozen=True, slots=True)
class Tap:
    """A place whose frames can be seen.

    Attributes:
        interface: name of the interface.
        pid: a process in its network namespace; None: this one.
        place: which place of the capture they belong to.
        incoming: what a frame that the interface receives is, seen from the place.
        outgoing: what a frame that it sends is; None: not looked at.
        emulated: the interface is of a network on this machine, where UDP may leave it merged and with checksums to
            come (docs/explanation/ports.md); not while somebody listens.
    """

    interface: str
    pid: int | None
    place: int
    incoming: int
    outgoing: int | None
    emulated: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: when it was seen, which way it went, its first bytes and its length."""

    time_ns: int
    direction: int
    data: bytes
    length: int


def switch_port_taps(interface: str, peer: tuple[str, int | None], place: int) -> list[Tap]:
    """Taps on a switch's port, at both ends of its link.

    A switch sends past the kernel's taps on its own interface, so what it sends is seen where it arrives.
    """
    name, pid = peer
    return [Tap(interface, None, place, INBOUND, None, True), Tap(name, pid, place, OUTBOUND, None, True)]


class Listener:
    """A tap at work; a context manager.

    Raises:
        CaptureError: there is no such interface, or it needs root.
    """

    def __init__(self, tap: Tap) -> None:
        self.tap = tap
        self._socket = _open(tap)
        self._waiting = 0  # frames, as of the last count
        self._dropped = 0
        self._unfinished = tap.emulated and self._checksums(_GET_CHECKSUMS) != 0
        if self._unfinished:
            self._checksums(_SET_CHECKSUMS, 0)  # the kernel then finishes them, and splits what is merged

    def fileno(self) -> int:
        """The descriptor for select()."""
        return self._socket.fileno()

    def waiting(self) -> Iterator[Frame]:
        """The frames to keep of those that have come by now.

        A busy interface has no end of them, and what is not kept may stand before what is.  They are counted, since
        their times tell nothing of it: the kernel begins to take times a little after it was asked to, and what came
        before has the time when it is read.
        """
        self._count()
        while self._waiting > 0 and (received := self._receive()) is not None:
            self._waiting -= 1
            time_ns, outgoing, data = received
            direction = self.tap.outgoing if outgoing else self.tap.incoming
            if direction is not None:
                yield Frame(time_ns, direction, data, len(data))

    def _receive(self) -> tuple[int, bool, bytes] | None:
        """The next frame: its time, whether the interface sent it, and its bytes; None when none waits."""
        try:
            data, ancillary, _, address = self._socket.recvmsg(_LONGEST, 64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError as error:
            raise CaptureError(f"{self.tap.interface}: {error.strerror}") from None
        time_ns = 0
        for level, kind, value in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = struct.unpack("@qq", value[:16])
                time_ns = seconds * 1_000_000_000 + nanoseconds
        return time_ns, address[2] == socket.PACKET_OUTGOING, data

    def dropped(self) -> int:
        """How many frames the kernel could not keep for us."""
        self._count()
        return self._dropped

    def _count(self) -> None:
        """Count the frames that came since the last time; the kernel counts those that it dropped with the others."""
        sol_packet, statistics = 263, 6
        came, dropped = struct.unpack("@II", self._socket.getsockopt(sol_packet, statistics, 8))
        self._waiting += came - dropped
        self._dropped += dropped

    def close(self) -> None:
        """Stop listening."""
        if self._unfinished:
            with contextlib.suppress(OSError):  # the interface is gone
                self._checksums(_SET_CHECKSUMS, 1)
        self._socket.close()

    def _checksums(self, command: int, value: int = 0) -> int:
        """Ask or say whether the interface, in the namespace of the socket, takes packets with checksums to come."""
        order = ctypes.create_string_buffer(struct.pack("=II", command, value), 8)
        pointer = struct.pack("@16sP", self.tap.interface.encode(), ctypes.addressof(order))
        fcntl.ioctl(self._socket, _SIOCETHTOOL, pointer.ljust(40, b"\0"))
        return int(struct.unpack("=II", order.raw)[1])

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open(tap: Tap) -> socket.socket:
    """Run in a thread of its own: a thread enters a namespace for itself alone, and this one ends at once."""
    opened: list[socket.socket] = []
    failed: list[OSError] = []

    def work() -> None:
        try:
            if tap.pid is not None:
                _enter(tap.pid)
            one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # takes nothing before it has its interface
            try:
                one.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER)
                one.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                one.bind((tap.interface, _ETH_P_ALL))
            except OSError:
                one.close()
                raise
            opened.append(one)
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failed:
        needed = "; run it with sudo" if isinstance(failed[0], PermissionError) else ""
        raise CaptureError(f"cannot listen on {tap.interface}: {failed[0].strerror}{needed}") from None
    return opened[0]


def _enter(pid: int) -> None:
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
