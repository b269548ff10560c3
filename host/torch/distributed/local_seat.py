"""A rank's place at a switch of this machine that the first rank has started for the group (switch_command.py)."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, final

from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.torch.distributed.seat import Loss

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


_ABSENT: Final = 1.0  # s; a local switch that ended is not started again
_SEATS: Final[weakref.WeakSet[LocalSeat]] = weakref.WeakSet()


def _disown_all() -> None:
    # A child that held a connection would hide its parent's end, and its goodbye would be the parent's.
    for seat in tuple(_SEATS):
        with contextlib.suppress(OSError):
            seat.disown()


os.register_at_fork(after_in_child=_disown_all)


def machine() -> str:
    """The boot id of this machine, which differs from every other machine's."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


@final
class LocalSeat:
    """A rank's place at the switch that listens on `path`.

    Raises:
        CollectiveError: kind ``system``: it does not answer, or refuses.
    """

    def __init__(self, path: str, rank: int) -> None:
        _SEATS.add(self)
        self.name = "torch"
        self.address = None
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.connect(path)
            self._send({"rank": rank})
            self._messages = self._connection.makefile("rb")
            message = self._next()
        except OSError as error:
            self._connection.close()
            raise _unavailable(f"the switch of this group at {path} does not answer", str(error)) from None
        if message is None or "member" not in message:
            self._connection.close()
            raise _unavailable(f"the switch of this group refuses rank {rank}", str((message or {}).get("refused")))
        self._member: dict[str, Any] = message["member"]
        self._left = threading.Event()

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        description = dict(self._member)
        communicator = Communicator.of_job(
            description, port=description.pop("port"), timeout=timeout, scaling=scaling, absent=_ABSENT
        )
        self._send({"attached": True})
        return communicator

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""
        threading.Thread(target=self._listen, args=(lost,), name="catchment-peers", daemon=True).start()

    def leave(self) -> None:
        """See `Seat`."""
        if not self._left.is_set():
            self._left.set()
            with contextlib.suppress(OSError):
                self._send({"goodbye": True})
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()

    def _listen(self, lost: Callable[[Loss], None]) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (message := self._next()) is not None:
                if "ended" in message:
                    lost(Loss(message["ended"], kind="unreachable"))
                    continue
                rank = int(message["lost"])
                lost(Loss(f"the process of rank {rank} has ended", (rank,)))
        if not self._left.is_set():
            lost(Loss("the switch of this group has ended", kind="unreachable"))

    def disown(self) -> None:
        """Forget the connection, which is the parent's: for a forked child."""
        with Path(os.devnull).open("r+b", buffering=0) as nowhere:
            os.dup2(nowhere.fileno(), self._connection.fileno(), inheritable=False)

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _next(self) -> dict[str, Any] | None:
        line = self._messages.readline()
        return json.loads(line) if line else None


def _unavailable(message: str, hint: str) -> CollectiveError:
    return CollectiveError(message, kind="system", hint=hint)
