"""Removing what a network left behind, also after kill -9: by our own names only."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from catchment.controlplane.networks.state import NetworkError
from catchment.sim.lab.mininet.claim import Claim
from catchment.sim.lab.mininet.naming import ENVIRONMENT_MARK, interface_prefix

_GRACE_SECONDS = 3.0


def marked_processes(network: str) -> list[int]:
    """Processes that carry the network's mark in their environment, ourselves excepted."""
    wanted = f"{ENVIRONMENT_MARK}={network}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def own_interfaces(network: str) -> list[str]:
    """Interfaces in this namespace that carry the network's prefix."""
    prefix = interface_prefix(network)
    return sorted(p.name for p in Path("/sys/class/net").iterdir() if p.name.startswith(prefix))


def remove_leftovers(claim: Claim) -> list[str]:
    """End the processes and delete the interfaces of a network that nobody else can have while it is claimed.

    Returns:
        What was removed, in words; empty when there was nothing.

    Raises:
        NetworkError: an interface could not be deleted.
    """
    removed = []
    processes = marked_processes(claim.network)
    _end(processes)
    removed += [f"process {pid}" for pid in processes]
    for interface in own_interfaces(claim.network):
        result = subprocess.run(["ip", "link", "delete", interface], capture_output=True, text=True, check=False)
        # The peer may have gone with its namespace meanwhile.
        if result.returncode and (Path("/sys/class/net") / interface).exists():
            raise NetworkError(f"cannot delete interface {interface}: {result.stderr.strip()}")
        removed.append(f"interface {interface}")
    return removed


def _end(processes: list[int]) -> None:
    handles = list(_open(processes))
    try:
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGTERM)
        # Shells on a dead terminal may ignore SIGTERM; SIGKILL follows for whatever is left.
        for handle in handles:
            if not _ended(handle, _GRACE_SECONDS / max(1, len(handles))):
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                _ended(handle, _GRACE_SECONDS)
    finally:
        for handle in handles:
            os.close(handle)


def _open(processes: list[int]) -> Iterator[int]:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            yield os.pidfd_open(pid)


def _ended(handle: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    return bool(poller.poll(seconds * 1000))
