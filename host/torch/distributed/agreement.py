"""What the ranks of a group tell each other through torch's store before there is a group."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, final

from torch._C._distributed_c10d import PrefixStore, Store

from catchment.host.collectives import CollectiveError

_READING: Final = 5.0
_POLL: Final = 0.005
_MAKING: Final = timedelta(minutes=5)  # the switch program may have to be compiled first


@final
class Agreement:
    """One attempt of all ranks to make a group.

    A store may hold what an earlier attempt left: torchrun keeps one for all restarts of its workers, and a process
    may destroy its groups and make them again.  So the first rank gives every attempt a name of its own and tells it to
    whoever arrives; everything else is said below that name.

    Attributes:
        store: torch's, of this attempt alone.
        rank: of this process in the group.
        size: of the group.

    Raises:
        CollectiveError: kind ``missing``: a rank has not come in time.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta) -> None:
        self._timeout = timeout
        self.rank = rank
        self.size = size
        self.store = PrefixStore(_lead(store, size, timeout) if rank == 0 else _join(store, rank, timeout), store)

    def of_first(self, key: str, make: Callable[[], Any]) -> Any:
        """What rank 0 made, which may take its time; its failure is every rank's.

        Raises:
            CollectiveError: rank 0 could not.
        """
        if self.rank == 0:
            try:
                said = {"made": make()}
            except CollectiveError as error:
                said = {"failed": error.message, "hint": error.hint, "kind": error.kind}
            except Exception as error:
                # The others wait for an answer.
                self.store.set(key, json.dumps({"failed": f"rank 0 failed: {error!r}", "hint": "", "kind": "system"}))
                raise
            self.store.set(key, json.dumps(said))
        said = json.loads(_said(self.store, key, 0, max(self._timeout, _MAKING)))
        if "failed" in said:
            raise CollectiveError(said["failed"], kind=said["kind"], hint=said["hint"], peers=(0,))
        return said["made"]

    def of_all(self, key: str, value: Any) -> list[Any]:
        """What every rank said."""
        self.store.set(f"{key}/{self.rank}", json.dumps(value))
        said = [json.loads(_said(self.store, f"{key}/{rank}", rank, self._timeout)) for rank in range(self.size)]
        self.store.add(f"{key}/read", 1)
        return said

    def await_readers(self, key: str) -> None:
        """Let the others read what was said before this process, and with it perhaps the store, ends."""
        deadline = time.monotonic() + _READING
        while self.store.add(f"{key}/read", 0) < self.size and time.monotonic() < deadline:
            time.sleep(0.01)


def _lead(store: Store, size: int, timeout: timedelta) -> str:
    """Name the attempt, and tell the name to every rank that arrives, until all of them have it."""
    name = uuid.uuid4().hex
    answered = dict.fromkeys(range(1, size), 0)
    deadline = time.monotonic() + timeout.total_seconds()
    while answered:
        for rank, before in list(answered.items()):
            arrivals = store.add(f"arrivals/{rank}", 0)
            if arrivals > before:  # the last may be of an attempt that is over
                store.set(f"attempt/{rank}/{arrivals}", name)
                answered[rank] = arrivals
            if store.check([f"{name}/joined/{rank}"]):
                del answered[rank]
        if answered and time.monotonic() > deadline:
            raise _missing(min(answered), f"nothing was heard of it within {timeout.total_seconds():g} s")
        if answered:
            time.sleep(_POLL)
    return name


def _join(store: Store, rank: int, timeout: timedelta) -> str:
    arrival = store.add(f"arrivals/{rank}", 1)
    name = _said(store, f"attempt/{rank}/{arrival}", 0, timeout).decode()
    store.set(f"{name}/joined/{rank}", "")
    return name


def _said(store: Store, key: str, rank: int, timeout: timedelta) -> bytes:
    try:
        store.wait([key], timeout)
        return store.get(key)
    except RuntimeError as error:
        raise _missing(rank, str(error).splitlines()[0]) from None


def _missing(rank: int, hint: str) -> CollectiveError:
    return CollectiveError(f"rank {rank} has not come", kind="missing", peers=(rank,), hint=hint)
