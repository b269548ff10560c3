"""Which controller runs for a topology: a locked file beside its jobs, for commands that look for it."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self, TextIO

from catchment.controlplane.controller.errors import ControllerError


@dataclass(frozen=True, slots=True)
class Presence:
    """A controller that runs.

    Attributes:
        owner: its process id.
        addresses: where its service listens.
        certificates: folder with the credentials of this machine's people and hosts.
    """

    owner: int
    addresses: tuple[str, ...]
    certificates: str


def _path(folder: Path, topology: str) -> Path:
    return folder / f"{topology}.controller.json"


class PresenceFile:
    """The lock of the one controller of a topology; a context manager."""

    def __init__(self, folder: Path, topology: str) -> None:
        self._path = _path(folder, topology)
        self._topology = topology
        self._handle: TextIO | None = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            ControllerError: a controller runs, or the folder cannot be written.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise ControllerError(f"cannot write {self._path}: {error.strerror}; use sudo?") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            running = read(self._path.parent, self._topology)
            owner = f" (process {running.owner})" if running else ""
            raise ControllerError(f"a controller of {self._topology} runs already{owner}; end it first") from None
        self._handle = handle
        return self

    def announce(self, addresses: tuple[str, ...], certificates: Path) -> None:
        """Tell other processes where the service is."""
        assert self._handle is not None
        self._handle.seek(0)
        self._handle.truncate()
        json.dump(asdict(Presence(os.getpid(), addresses, str(certificates))), self._handle)
        self._handle.flush()

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._handle.truncate(0)
            self._handle.close()


def read(folder: Path, topology: str) -> Presence | None:
    """The controller that runs for a topology, or None."""
    path = _path(folder, topology)
    try:
        with path.open("r", encoding="utf-8") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                data = json.loads(handle.read())
                return Presence(data["owner"], tuple(data["addresses"]), data["certificates"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None  # no process holds the lock: the controller that wrote the file is gone
