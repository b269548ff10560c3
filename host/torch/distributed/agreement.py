"""What the ranks of a group tell each other through torch's store before there is a group."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from time import monotonic, sleep
from typing import Any, Final, final

from torch._C._distributed_c10d import PrefixStore, Store

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.companion_work import GRACE, Lost

_READING: Final = 5.0
_POLL: Final = 0.005
MAKING: Final = timedelta(minutes=5)
"""How long the ranks wait for what one of them makes, at least: the switch program may have to be compiled first."""


@final
class Agreement:
    """One attempt of all ranks to make a group.

    A store may hold what an earlier attempt left: torchrun keeps one for all restarts of its workers, and a process
    may destroy its groups and make them again.  So the first rank gives every attempt a name of its own and tells it to
    whoever arrives; everything else is said below that name. When a rank does not come, the first one tells the others.

    Args:
        store: torch's.
        rank: of this process in the group.
        size: of the group.
        timeout: of each step.
        lost: gives what to raise when a rank that is needed is known to be gone; see `Lost`. None: nothing is known.

    Attributes:
        store: torch's, of this attempt alone.
        rank: of this process in the group.
        size: of the group.

    Raises:
        CollectiveError: kind ``missing``: ranks have not come in time, or are lost.
    """

    def __init__(self, store: Store, rank: int, size: int, timeout: timedelta, lost: Lost | None = None) -> None:
        self._timeout = timeout
        self._lost = lost
        self.rank = rank
        self.size = size
        call = _Call(store, timeout, lost)
        self.store = PrefixStore(call.lead(size) if rank == 0 else call.join(rank), store)

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
        said = json.loads(self._said(key, 0, max(self._timeout, MAKING)))
        if "failed" in said:
            raise CollectiveError(said["failed"], kind=said["kind"], hint=said["hint"], peers=(0,))
        return said["made"]

    def of_all(self, key: str, value: Any) -> list[Any]:
        """What every rank said."""
        self.store.set(f"{key}/{self.rank}", json.dumps(value))
        said = [json.loads(self._said(f"{key}/{rank}", rank, self._timeout)) for rank in range(self.size)]
        self.store.add(f"{key}/read", 1)
        return said

    def await_readers(self, key: str) -> None:
        """Let the others read what was said before this process, and with it perhaps the store, ends."""
        _await_count(self.store, f"{key}/read", self.size)

    def _said(self, key: str, rank: int, timeout: timedelta) -> bytes:
        return _said(self.store, key, rank, timeout, self._lost)


class _Call:
    """The first step of an attempt: all ranks come, or hear who has not."""

    def __init__(self, store: Store, timeout: timedelta, lost: Lost | None) -> None:
        self._store = store
        self._timeout = timeout
        self._lost = lost

    def _loss(self) -> CollectiveError | None:
        return None if self._lost is None else self._lost(0.0)

    def lead(self, size: int) -> str:
        """Name the attempt, and tell the name to every rank that arrives, until all of them have it."""
        name = uuid.uuid4().hex
        missing = self._gather(name, size)
        failure = self._loss()
        if missing and failure is None:
            failure = _missing(missing, f"nothing was heard within {self._timeout.total_seconds():g} s")
        self._store.set(f"{name}/outcome", json.dumps(None if failure is None else _as_told(failure)))
        if failure is not None:
            _await_count(self._store, f"{name}/heard", size - 1 - len(missing))
            raise failure
        return name

    def join(self, rank: int) -> str:
        """The name of the attempt, once all ranks have come."""
        arrival = self._store.add(f"arrivals/{rank}", 1)
        name = _said(self._store, f"attempt/{rank}/{arrival}", 0, self._timeout, self._lost).decode()
        self._store.set(f"{name}/joined/{rank}", "")
        in_time = self._timeout + timedelta(seconds=_READING)  # the first rank may have come last
        try:
            failure = json.loads(_said(self._store, f"{name}/outcome", 0, in_time, self._lost))
            if failure is not None:
                raise CollectiveError(**failure)
        except CollectiveError:
            with suppress(RuntimeError):  # a store that has ended
                self._store.add(f"{name}/heard", 1)
            raise
        return name

    def _gather(self, name: str, size: int) -> list[int]:
        """The ranks that do not come in time, or soon after one is lost."""
        answered = dict.fromkeys(range(1, size), 0)
        deadline = monotonic() + self._timeout.total_seconds()
        ending = False
        while True:
            for rank, before in list(answered.items()):
                arrivals = self._store.add(f"arrivals/{rank}", 0)
                if arrivals > before:  # the last may be of an attempt that is over
                    self._store.set(f"attempt/{rank}/{arrivals}", name)
                    answered[rank] = arrivals
                if self._store.check([f"{name}/joined/{rank}"]):
                    del answered[rank]
            if not answered or monotonic() > deadline:
                return list(answered)
            if not ending and self._loss() is not None:
                ending, deadline = True, min(deadline, monotonic() + GRACE)  # those that come meanwhile are told
            sleep(_POLL)


def _said(store: Store, key: str, rank: int, timeout: timedelta, lost: Lost | None) -> bytes:
    """What `rank` says.

    Raises:
        CollectiveError: it says nothing in time, or a rank is lost meanwhile.
    """
    try:
        if lost is None:
            store.wait([key], timeout)
            return store.get(key)
        until = monotonic() + timeout.total_seconds()
        while not store.check([key]):  # waits in slices make torch's stores complain
            loss = lost(0.0)
            if loss is not None:
                raise loss
            if monotonic() > until:
                raise _missing([rank], f"nothing was heard within {timeout.total_seconds():g} s")
            sleep(_POLL)
        return store.get(key)
    except CollectiveError:
        raise
    except RuntimeError as error:
        raise _missing([rank], str(error).splitlines()[0]) from None


def _await_count(store: Store, key: str, count: int) -> None:
    deadline = monotonic() + _READING
    while store.add(key, 0) < count and monotonic() < deadline:
        sleep(0.01)


def _missing(ranks: list[int], hint: str) -> CollectiveError:
    who = ", ".join(map(str, ranks))
    said = f"rank {who} has not come" if len(ranks) == 1 else f"ranks {who} have not come"
    return CollectiveError(said, kind="missing", peers=tuple(ranks), hint=hint)


def _as_told(error: CollectiveError) -> dict[str, Any]:
    return {"message": error.message, "kind": error.kind, "peers": error.peers, "hint": error.hint}
