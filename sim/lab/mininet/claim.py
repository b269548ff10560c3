"""The one live network of its interface names on this machine: what leftovers are found by belongs to nobody else."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment.controlplane.networks.state import NetworkError
from catchment.sim.lab.mininet.naming import interface_prefix
from catchment.wire.run_folder import run_folder

_SCOPE = "catchment-network-"
_LISTENS_SECONDS = 1.0  # who has bound the name listens at once, unless it is none of ours
_UCRED = struct.Struct("3i")  # pid, uid and gid, as SO_PEERCRED of socket(7) gives them


class Claim:
    """The claim on what a network is found by; a context manager.

    It is the name of an abstract socket: one for all run folders, and the kernel drops it when its process ends. It is
    made of the prefix of the interfaces, which follows from the network's name, so that two networks of one name, or
    of two names with the same prefix, cannot both have it.
    """

    def __init__(self, network: str, held: socket.socket) -> None:
        self.network = network
        self._held = held

    @classmethod
    def acquire(cls, network: str, *, patience: float = 0.0) -> Self:
        """Take the claim, as soon as its holder drops it within `patience` seconds.

        Raises:
            NetworkError: a live network has it; names it and what to do.
        """
        deadline = time.monotonic() + patience
        while True:
            held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                held.bind(_address(network))
                held.listen()
            except OSError as error:
                held.close()
                if error.errno != errno.EADDRINUSE:
                    raise
                _wait_dropped(network, deadline)
            else:
                return cls(network, held)

    def drop(self) -> None:
        """Leave the claim to others; safe to call twice."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drop()


def _address(network: str) -> str:
    return f"\0{_SCOPE}{interface_prefix(network)}"


def _wait_dropped(network: str, deadline: float) -> None:
    """Wait until the claim may be free; raises `NetworkError` when its holder lives on after the deadline."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        refused = probe.connect_ex(_address(network))
        if refused == errno.ECONNREFUSED and time.monotonic() < deadline + _LISTENS_SECONDS:
            time.sleep(0.001)  # it was dropped, or is not listened at yet: neither comes with an event
            return
        # Nobody accepts; the connection breaks when the holder closes its end.
        poller = select.poll()
        poller.register(probe, select.POLLHUP)
        if not refused and poller.poll(max(0.0, deadline - time.monotonic()) * 1000):
            return
        pid = 0 if refused else _UCRED.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))[0]
    raise NetworkError(_refusal(network, _Holder.of(network, pid)))


@dataclass(frozen=True, slots=True)
class _Holder:
    """Who has a claim, as far as the kernel tells.

    Attributes:
        pid: its process; 0 where that is not known.
        network: its name; empty where it is not known.
        folder: its run folder, or None.
    """

    pid: int
    network: str
    folder: Path | None

    @classmethod
    def of(cls, network: str, pid: int) -> _Holder:
        """The process's network whose interfaces would be named like those of `network`: it has its state file open."""
        with contextlib.suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    file = descriptor.readlink()
                    if file.suffix == ".json" and interface_prefix(file.stem) == interface_prefix(network):
                        return cls(pid, file.stem, file.parent)
        return cls(pid, "", None)


def _refusal(network: str, holder: _Holder) -> str:
    process = f"process {holder.pid or 'unknown'}"
    if not holder.network:
        return f"{process} is at work on a network with the interfaces of {network}; try again when it has ended"
    elsewhere = "" if holder.folder == run_folder() else f"CATCHMENT_RUN_DIR={holder.folder} "
    end = f"`{elsewhere}catchment net down {holder.network}`"
    whose = f"{process}, run folder {holder.folder}"
    if holder.network == network:
        return f"network {network} is already up ({whose}); run {end} first"
    prefix = interface_prefix(network)
    return (
        f"the interfaces of network {network} would be named {prefix}..., as those of network {holder.network} are, "
        f"which is up ({whose}); give {network} another name, or run {end} first"
    )
