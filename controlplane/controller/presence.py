"""Which controller runs for a topology: a locked file beside its jobs, for commands that look for it."""

from __future__ import annotations

import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from catchment.controlplane.controller.errors import ControllerError
from catchment.lock_file import take

_LOOK_SECONDS, _PAUSE_SECONDS = 1.0, 0.01
"""A controller that starts tries so long, at this interval: whoever looks for one holds the lock for much less."""
_MOST_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Presence:
    """A controller that runs.

    Attributes:
        owner: its process id.
        addresses: where its service listens.
        certificates: folder with the credentials of this machine's people and hosts.
        topology: name of its topology.
    """

    owner: int
    addresses: tuple[str, ...]
    certificates: str
    topology: str


def _path(folder: Path, topology: str) -> Path:
    return folder / f"{topology}.controller.json"


class PresenceFile:
    """The lock of the one controller of a topology; a context manager."""

    def __init__(self, folder: Path, topology: str) -> None:
        self._path = _path(folder, topology)
        self._topology = topology
        self._handle: int | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ControllerError: a controller runs, or the folder cannot be written.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise ControllerError(f"cannot write {self._path}: {error.strerror}; use sudo?") from None
        until = time.monotonic() + _LOOK_SECONDS
        while not take(handle):
            running = read(self._path.parent, self._topology)
            if running is not None or time.monotonic() >= until:
                os.close(handle)
                owner = f" (process {running.owner})" if running else ""
                raise ControllerError(f"a controller of {self._topology} runs already{owner}; end it first")
            time.sleep(_PAUSE_SECONDS)
        os.ftruncate(handle, 0)  # what a killed controller announced counts no more
        self._handle = handle
        return self

    def announce(self, addresses: tuple[str, ...], certificates: Path) -> None:
        """Tell other processes where the service is; whoever reads meanwhile reads what was there before, or all."""
        assert self._handle is not None
        content = json.dumps(asdict(Presence(os.getpid(), addresses, str(certificates), self._topology))).encode()
        # Blanks cover what an earlier controller left, until the file is shorter.
        os.pwrite(self._handle, content.ljust(os.fstat(self._handle).st_size), 0)
        os.ftruncate(self._handle, len(content))

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)
            self._handle = None


def read(folder: Path, topology: str) -> Presence | None:
    """The controller that runs for a topology, or None: also of one that has not announced itself yet."""
    return _look(folder, topology)[1]


def wait_for(folder: Path, topology: str, *, patience: float) -> Presence | None:
    """The controller that runs for a topology, or None; one that starts has `patience` seconds to announce itself.

    Raises:
        ControllerError: it takes longer.
    """
    until = time.monotonic() + patience
    while True:
        runs, presence = _look(folder, topology)
        if not runs or presence is not None:
            return presence
        if time.monotonic() >= until:
            raise ControllerError(f"a controller of {topology} has been starting for {patience:g} s; ask once it is up")
        time.sleep(_PAUSE_SECONDS)


def _look(folder: Path, topology: str) -> tuple[bool, Presence | None]:
    """Whether a controller has the lock, and what it has announced."""
    path = _path(folder, topology)
    locked = False
    try:
        with path.open("rb", buffering=0) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                locked = True
                data = json.loads(handle.read(_MOST_BYTES))
                return locked, Presence(data["owner"], tuple(data["addresses"]), data["certificates"], topology)
    except (OSError, ValueError, KeyError, TypeError):
        return locked, None
    return False, None  # no process holds the lock: the controller that wrote the file is gone
