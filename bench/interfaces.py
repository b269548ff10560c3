"""A network of its own for a benchmark: virtual Ethernet pairs in a new network namespace of this process."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

_CLONE_NEWNET = 0x40000000


def enter_new_network() -> None:
    """Put this thread, and every process and thread that it starts from here on, into an empty network.

    Raises:
        OSError: no permission (root is needed).
    """
    if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"a new network namespace: {os.strerror(error)} (root is needed)")
    _ip("link", "set", "lo", "up")


def add_pairs(numbers: Iterable[int]) -> None:
    """Pairs s1-h1, s2-h2, ...: the switch's side and the host's side."""
    for number in numbers:
        _ip("link", "add", f"s{number}", "mtu", "9000", "type", "veth", "peer", "name", f"h{number}", "mtu", "9000")
        for side in "sh":
            path = Path(f"/proc/sys/net/ipv6/conf/{side}{number}/disable_ipv6")
            if path.exists():
                path.write_text("1\n")  # no frames of the kernel's own
            _ip("link", "set", f"{side}{number}", "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
