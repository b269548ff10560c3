"""Packet sockets in another network namespace."""

from __future__ import annotations

import ctypes
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CLONE_NEWNET = 0x40000000


def packet_socket(namespace: Path, interface: str, ether_type: int) -> socket.socket:
    """A raw socket on an interface of the namespace: a thread enters it, since a thread's namespace is its own."""

    def enter_and_open() -> socket.socket:
        with namespace.open("rb") as handle:
            if ctypes.CDLL(None, use_errno=True).setns(handle.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(namespace))
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        opened.bind((interface, ether_type))
        return opened

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(enter_and_open).result()
