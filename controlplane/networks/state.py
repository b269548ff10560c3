"""Emulated networks that are up: what their owner tells other processes, and a lock.

The owner holds an advisory lock on the state file for as long as it lives, however it ends; a state
file without a lock holder is a leftover.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pwd
import shutil
import socket
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO

from catchment.controlplane.errors import ControlPlaneError
from catchment.lock_file import take
from catchment.wire.rail_report import SOCKETS as RANK_SOCKETS
from catchment.wire.run_folder import run_folder
from catchment.wire.socket_folder import LONGEST_SOCKET_PATH

_LONGEST_NAME = 255 - len(".json")
"""Bytes: the state file is named after its network."""
_SOCKETS = ("switch-*.sock", "bmv2-*.ipc", RANK_SOCKETS)


class NetworkError(ControlPlaneError):
    """An emulated network could not be started, used or removed; says what to do."""


def check_name(name: str) -> None:
    """Make sure that something can be the name of a network, which becomes part of paths.

    Raises:
        NetworkError: it cannot.
    """
    if not name[:1].isalnum() or "/" in name or "\0" in name:
        raise NetworkError(f"{name!r} is no name of a network")
    if (size := len(os.fsencode(name))) > _LONGEST_NAME:
        raise NetworkError(
            f"{name[:20]!r}... is no name of a network: it has {size} bytes, {_LONGEST_NAME} at the most"
        )


def made_run_folder() -> Path:
    """The folder of what runs, made where it is not there yet.

    Raises:
        NetworkError: it cannot be made, or not be written.
    """
    folder = run_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unusable(folder, error) from None
    return folder


def _unusable(folder: Path, error: OSError) -> NetworkError:
    why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
    return NetworkError(f"no network can be noted in {folder}: {why}; CATCHMENT_RUN_DIR=FOLDER names another folder")


def jobs_folder(name: str) -> Path:
    """The file that a network's jobs are noted in; it has the lifetime of the network's switches."""
    return run_folder() / "jobs" / name


def switch_socket(network: str, switch: str) -> Path | None:
    """The socket in our folder at which an embedded switch serves P4Runtime; None: no socket may have such a path."""
    path = run_folder() / f"switch-{network}-{switch}.sock"
    return path if len(os.fsencode(_admin_beside(path))) <= LONGEST_SOCKET_PATH else None


def _admin_beside(socket_file: Path) -> Path:
    return socket_file.with_name(f"{socket_file.name.removesuffix('.sock')}.admin.sock")


def admin_socket(address: str) -> Path | None:
    """The admin socket of the embedded switch of this machine that serves P4Runtime at `address`.

    It is beside a Unix socket, and in our folder where the address is a TCP port.

    None where no such socket can be: the folder is not ours, or its name is too long for one.
    """
    if address.startswith("unix:"):
        path = _admin_beside(Path(address.removeprefix("unix:")))
    else:
        path = run_folder() / f"switch-{address.rpartition('@')[2].replace(':', '-').replace('/', '-')}.sock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return path if os.access(path.parent, os.W_OK) and len(os.fsencode(path)) <= LONGEST_SOCKET_PATH else None


def remove_dead_sockets() -> list[Path]:
    """Remove the sockets that switches and ranks left which were killed; gives those that went.

    Only where nobody answers and no process has the socket: one that starts binds it before it listens.
    """
    found = [path for pattern in _SOCKETS for path in run_folder().glob(pattern)]
    return [path for path in found if _is_dead(path, path) and _remove_dead(path)]


def _is_dead(path: Path, now_at: Path) -> bool:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # one whose queue is full lives
        if now_at.is_socket() and probe.connect_ex(str(now_at)) == errno.ECONNREFUSED:
            held = Path("/proc/net/unix").read_text(errors="replace").splitlines()
            return not any(line.endswith(f" {path}") for line in held)
    return False


def _remove_dead(path: Path) -> bool:
    """Rename before removing: a process may have made a socket of its own there since this process looked."""
    aside = path.with_name(f"dead-{os.getpid()}-{threading.get_ident()}")
    with contextlib.suppress(OSError):
        path.rename(aside)
        dead = _is_dead(path, aside)
        if not dead:
            path.hardlink_to(aside)
        aside.unlink()
        return dead
    return False


@dataclass(frozen=True, slots=True)
class NetworkState:
    """A network that is up.

    Attributes:
        name: its name.
        owner: process id of the process that holds it.
        topology: file it was made from; empty when made by a program.
        addresses: switch name -> gRPC address.
        hosts: host name -> process id of a process in its namespace.
        ready: the switches have their programs.
    """

    name: str
    owner: int
    topology: str = ""
    addresses: Mapping[str, str] = field(default_factory=dict)
    hosts: Mapping[str, int] = field(default_factory=dict)
    ready: bool = False


class StateFile:
    """The locked state file of one network."""

    def __init__(self, handle: TextIO, path: Path) -> None:
        self._handle = handle
        self._path = path

    @classmethod
    def acquire(cls, name: str) -> Self:
        """Take the lock of a network name.

        Raises:
            NetworkError: a network of that name is up, or the folder of what runs cannot be made or written.
        """
        folder = made_run_folder()
        path = folder / f"{name}.json"
        while True:
            try:
                handle = path.open("a+", encoding="utf-8")
            except OSError as error:
                raise _unusable(folder, error) from None
            if not take(handle.fileno()):
                handle.close()
                state = read_state(name)
                owner = f" (process {state.owner})" if state else ""
                raise NetworkError(f"network {name} is already up{owner}; run `catchment net down {name}` first")
            if path.exists() and path.stat().st_ino == os.fstat(handle.fileno()).st_ino:
                shutil.rmtree(jobs_folder(name), ignore_errors=True)
                return cls(handle, path)
            handle.close()  # its owner removed it between our opening and locking it

    def write(self, state: NetworkState) -> None:
        """Replace the contents."""
        self._handle.seek(0)
        self._handle.truncate()
        json.dump(asdict(state), self._handle, indent=2)
        self._handle.flush()

    def release(self) -> None:
        """Remove the file, the lock, and the jobs that were on the network's switches."""
        shutil.rmtree(jobs_folder(self._path.stem), ignore_errors=True)
        self._path.unlink(missing_ok=True)
        self._handle.close()


def is_held(name: str) -> bool:
    """Whether a live process owns the network.

    Raises:
        NetworkError: its state file is another user's, who lets nobody else read it.
    """
    path = run_folder() / f"{name}.json"
    try:
        handle = path.open("r", encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):  # its owner may remove it at any time
        return False
    except PermissionError:
        raise NetworkError(
            f"network {name} is another user's: {path} may not be read; use sudo, or be its owner{_owner_of(path)}"
        ) from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _owner_of(path: Path) -> str:
    """Who owns a file, in words; nothing where that cannot be seen."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return ""
    try:
        return f", {pwd.getpwuid(owner).pw_name}"
    except KeyError:
        return f", user {owner}"


def wait_released(name: str, timeout: float) -> bool:
    """Wait until no live process owns the network; false when one still does after `timeout` seconds."""
    path = run_folder() / f"{name}.json"
    released = threading.Event()

    def wait_for_lock() -> None:
        with contextlib.suppress(OSError), path.open("r", encoding="utf-8") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH)
        released.set()

    # The system call that waits for a lock knows no timeout.
    threading.Thread(target=wait_for_lock, name=f"lock of network {name}", daemon=True).start()
    return released.wait(timeout)


def read_state(name: str) -> NetworkState | None:
    """The state of a network, or None when there is no (readable) file."""
    try:
        data: dict[str, Any] = json.loads((run_folder() / f"{name}.json").read_text("utf-8"))
        return NetworkState(**data)
    except (OSError, ValueError, TypeError):
        return None


def known_networks() -> list[str]:
    """Names with a state file, up or left over."""
    folder = run_folder()
    return sorted(path.stem for path in folder.glob("*.json")) if folder.is_dir() else []


def networks_up() -> list[NetworkState]:
    """The networks that a live process owns."""
    states = (read_state(name) for name in known_networks() if is_held(name))
    return [state for state in states if state is not None]


def discard_state(name: str) -> None:
    """Remove the state file and the jobs of a network whose owner is gone."""
    if not is_held(name):
        shutil.rmtree(jobs_folder(name), ignore_errors=True)
        with contextlib.suppress(NotADirectoryError):
            (run_folder() / f"{name}.json").unlink(missing_ok=True)
