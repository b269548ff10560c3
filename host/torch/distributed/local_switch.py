"""This process's connection to a switch of its machine, which all its groups there share."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, final

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.seat import Loss

Member = dict[str, Any]
"""What `Communicator.of_job` needs."""

_SWITCHES: Final[weakref.WeakSet[LocalSwitch]] = weakref.WeakSet()


def _disown_all() -> None:
    # A child that held a connection would hide its parent's end, and its goodbye would be the parent's.
    for switch in tuple(_SWITCHES):
        with contextlib.suppress(OSError):
            switch.disown()


os.register_at_fork(after_in_child=_disown_all)


@final
class LocalSwitch:
    """A switch of this machine that listens on `path`, where this process is `rank`; until its last group is left.

    Attributes:
        path: of its socket.
        rank: of this process among all processes of the switch.

    Raises:
        CollectiveError: kind ``system``: it does not answer, or refuses.
    """

    def __init__(self, path: str, rank: int) -> None:
        self.path = path
        self.rank = rank
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._changing = threading.Lock()
        self._watchers: dict[str, Callable[[Loss], None]] = {}
        self._losses: list[Loss] = []
        self._answers: queue.SimpleQueue[Member] = queue.SimpleQueue()
        self._asking = threading.Lock()
        self._groups: set[str] = set()
        self.closed = False
        try:
            self._connection.connect(path)
            self._send({"rank": rank})
            self._messages = self._connection.makefile("rb")
            message = self._next()
        except OSError as error:
            self._connection.close()
            raise _unavailable(f"the switch of this group at {path} does not answer", str(error)) from None
        if message is None or "port" not in message:
            self._connection.close()
            raise _unavailable(f"the switch of this group refuses rank {rank}", str((message or {}).get("refused")))
        _SWITCHES.add(self)
        threading.Thread(target=self._listen, name="catchment-peers", daemon=True).start()

    def make_group(self, name: str, ranks: Sequence[int]) -> list[Member]:
        """Make a group of these ranks of the switch; what each of them needs to take part.

        Raises:
            CollectiveError: kind ``system``: the switch refuses, or has ended.
        """
        with self._asking:
            with contextlib.suppress(OSError):  # the listener says what has happened
                self._send({"make": name, "ranks": list(ranks)})
            message = self._answers.get()
            if message.get("end"):
                self._answers.put(message)  # for the next process that asks
        if "members" not in message:
            raise _unavailable(f"the switch at {self.path} makes no group", str(message.get("refused")))
        return list(message["members"])

    @property
    def has_lost(self) -> bool:
        """Whether anybody on it is known to be gone: this process may have left its port then, for good."""
        return bool(self._losses)

    def join(self, name: str) -> None:
        """Take part in a group, until `leave`."""
        with self._changing:
            self._groups.add(name)

    def attached(self) -> None:
        """Say that this process has attached to its port."""
        self._send({"attached": True})

    def tell(self, text: str, hosts: Sequence[str]) -> None:
        """Tell all other processes on the switch of a loss, of these hosts; nothing happens if the switch has ended."""
        with contextlib.suppress(OSError):
            self._send({"tell": text, "hosts": list(hosts)})

    def watch(self, name: str, lost: Callable[[Loss], None]) -> None:
        """Call `lost`, from a thread of this connection, for every rank of the switch that is gone, or for the switch.

        The losses name ranks of the switch.
        """
        with self._changing:
            self._watchers[name] = lost
            losses = list(self._losses)
        for loss in losses:
            _call(lost, loss)

    def leave(self, name: str) -> None:
        """Leave a group; behind the last one the connection ends in order."""
        with self._changing:
            if name not in self._groups:
                return
            self._groups.discard(name)
            self._watchers.pop(name, None)
            with contextlib.suppress(OSError):
                self._send({"left": name})
        self.end_unless_used()

    def end_unless_used(self) -> None:
        """End the connection in order if this process takes part in no group."""
        with self._changing:
            if self._groups:
                return
            self.closed = True
            with contextlib.suppress(OSError):
                self._send({"goodbye": True})
                self._connection.shutdown(socket.SHUT_RDWR)
            self._connection.close()

    def disown(self) -> None:
        """Forget the connection, which is the parent's: for a forked child."""
        self.closed = True
        self._changing = threading.Lock()  # another thread of the parent may have had it
        with Path(os.devnull).open("r+b", buffering=0) as nowhere:
            os.dup2(nowhere.fileno(), self._connection.fileno(), inheritable=False)

    def _listen(self) -> None:
        with self._messages, contextlib.suppress(OSError, ValueError):  # the descriptor is theirs as well
            while (message := self._next()) is not None:
                if "made" in message:
                    self._answers.put(message)
                elif "told" in message:
                    self._tell(Loss(str(message["told"]), hosts=tuple(message["hosts"])))
                elif "ended" in message:
                    self._tell(Loss(message["ended"], kind="unreachable"))
                elif "lost" in message:
                    rank = int(message["lost"])
                    self._tell(Loss(f"the process of rank {rank} has ended", (rank,)))
        self._answers.put({"end": True, "refused": "it has ended"})
        if not self.closed:
            self.closed = True
            self._tell(Loss("the switch of this group has ended", kind="unreachable"))

    def _tell(self, loss: Loss) -> None:
        with self._changing:
            self._losses.append(loss)
            watchers = list(self._watchers.values())
        for lost in watchers:
            _call(lost, loss)

    def _send(self, message: dict[str, Any]) -> None:
        self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _next(self) -> dict[str, Any] | None:
        line = self._messages.readline()
        return json.loads(line) if line else None


def _call(lost: Callable[[Loss], None], loss: Loss) -> None:
    # A watcher waits a while for what is under way: no group waits for another's.
    threading.Thread(target=lost, args=(loss,), name="catchment-loss", daemon=True).start()


def _unavailable(message: str, hint: str) -> CollectiveError:
    return CollectiveError(message, kind="system", hint=hint)
