"""Requests of other processes to the one that owns an emulated network: one message there, one message back.

The socket lies beside the state file and is its user's only.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from catchment.controlplane.networks.state import NetworkError
from catchment.wire.run_folder import run_folder

_LONGEST = 1 << 16
_LONGEST_COMPLAINT = _LONGEST // 8  # characters: JSON may take six bytes for one
_CLIENT_SECONDS = 5.0
"""How long the owner listens to a process that has connected."""
_ANSWER_SECONDS = 120.0

Handler = Callable[[str, str], None]
"""Does what is asked: (verb, switch); raises NetworkError."""


class RequestSocket:
    """The owner's end; a context manager.

    Args:
        network: name of the network.
    """

    def __init__(self, network: str) -> None:
        self._path = _path(network)
        self._path.unlink(missing_ok=True)  # of an owner that was killed: the name is ours now
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with _reachable(self._path) as address:
            self._socket.bind(address)
        self._path.chmod(0o600)
        self._socket.listen()

    def fileno(self) -> int:
        """A descriptor that becomes readable when a process makes a request."""
        return self._socket.fileno()

    def answer(self, handler: Handler) -> None:
        """Take one request and have `handler` carry it out; the requester gets its error in the reply."""
        client, _ = self._socket.accept()
        with client, contextlib.suppress(OSError):  # the requester may have gone
            client.settimeout(_CLIENT_SECONDS)
            client.send(json.dumps(_reply(client.recv(_LONGEST), handler)).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
        self._path.unlink(missing_ok=True)


def ask(network: str, verb: str, switch: str) -> None:
    """Have the owner of a network do something, and wait until it is done.

    Raises:
        NetworkError: it takes no requests, does not answer, or says why not.
    """
    path = _path(network)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(_ANSWER_SECONDS)
        try:
            with _reachable(path) as address:
                connection.connect(address)
            connection.send(json.dumps({"verb": verb, "switch": switch}).encode())
            said = connection.recv(_LONGEST)
        except PermissionError:
            raise NetworkError(f"network {network} is another user's: run it with sudo") from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise NetworkError(f"network {network} was not made by `catchment net up`: its program owns it") from None
        except OSError as error:
            raise NetworkError(f"the owner of network {network} does not answer: {error}") from None
    if not said:
        raise NetworkError(f"network {network} ended meanwhile")
    if complaint := json.loads(said).get("error"):
        raise NetworkError(complaint)


def _reply(request: bytes, handler: Handler) -> dict[str, str]:
    try:
        asked = json.loads(request)
        verb, switch = str(asked["verb"]), str(asked["switch"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"error": "that is no request"}
    try:
        handler(verb, switch)
    except (NetworkError, OSError) as error:
        return {"error": str(error)[-_LONGEST_COMPLAINT:]}  # the end of a log is what tells
    return {}


def _path(network: str) -> Path:
    return run_folder() / f"{network}.requests"


@contextlib.contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """The path as a socket's address, which takes 107 bytes, wherever the folder is."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
