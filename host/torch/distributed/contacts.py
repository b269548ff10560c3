"""Sends and receives of the companion: none of their calls waits for the other rank."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from time import monotonic
from typing import Any, Final, final

from torch.futures import Future

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.companion_work import GRACE, Lost, watched
from catchment.host.torch.distributed.later_work import LaterWork, Start
from catchment.host.torch.distributed.patience import patience_of
from catchment.host.torch.distributed.ranks import RankOrder

_RECEIVE: Final = "recv from"
_AWAITED: Final = "the other rank has not begun a send or receive"
_OVERDUE: Final = "Timed out waiting"  # as gloo says it
_SHORTEST: Final = timedelta(milliseconds=1)


@final
class Message(LaterWork):
    """A send to one rank, or a receive from it.

    Args:
        call: what to do with the peer, in words.
        peer: the other rank.
        tag: tells it from others between the two.
        start: see `LaterWork`.
        lost: see `Lost`.
        patience: seconds for which `wait` waits for the other rank, unless it is given others.
        order: says which rank of all the other one is.
    """

    def __init__(
        self, call: str, peer: int, tag: int, start: Start, *, lost: Lost, patience: float, order: RankOrder | None
    ) -> None:
        super().__init__(start, _AWAITED, lost)
        self._order = order
        self.peer = peer
        self._call = call
        self._tag = tag
        self._patience = patience

    def __str__(self) -> str:
        return f"{self._call} rank {self.peer}, tag {self._tag}"

    def may_take(self, tag: int) -> bool:
        """True for a receive of messages with this tag."""
        return self._tag == tag and self._call == _RECEIVE

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Block until done; a timeout of 0 is the group's.

        Raises:
            CollectiveError: the other rank was lost, or not heard of in time; gloo goes on with neither.
            RuntimeError: the companion's.
        """
        timeout = patience_of(timeout)
        given = timeout if timeout > timedelta(0) else timedelta(seconds=self._patience)
        begun = monotonic()
        if not self.await_begin(given.total_seconds()):
            raise self._missing(f"{_AWAITED} with this one in {given.total_seconds():g} s")
        try:
            return super().wait(max(_SHORTEST, given - timedelta(seconds=monotonic() - begun)))
        except CollectiveError:
            raise
        except RuntimeError as error:
            if _OVERDUE in str(error):
                raise self._missing(f"nothing was heard in {given.total_seconds():g} s") from None
            raise RuntimeError(f"{self}: {error}") from None

    def _missing(self, why: str) -> CollectiveError:
        hint = "one of the two has to send, the other one to receive"
        error = CollectiveError(f"{self}: {why}", kind="missing", peers=(self.peer,), hint=hint)
        return error if self._order is None else self._order.in_all(error)

    def source_rank(self) -> int:
        """The other rank."""
        return self.peer

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """Raise: gloo completes no future of a send or a receive.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"{self}: it has no future, only wait")

    def _reason(self, failure: Exception) -> Exception:
        return self._lost(GRACE) or failure if isinstance(failure, RuntimeError) else failure


@final
class Contacts:
    """The ranks that gloo is connected to, for sends and receives.

    The first of them waits in gloo until the other rank begins one, too. A thread for each such rank does that, and
    begins what is called meanwhile in the same order; it is left alone when a rank is lost.
    """

    def __init__(self, lost: Lost, patience: float, order: RankOrder | None = None) -> None:
        """See `Message`."""
        self._lost = lost
        self._message = partial(Message, lost=lost, patience=patience, order=order)
        self._changing = threading.Lock()
        self._met: set[int] = set()
        self._waiting: dict[int, deque[Message]] = {}

    def send(self, peer: int, tag: int, start: Start) -> Message:
        """Give what `start` will start, which sends to a rank.

        Raises:
            CollectiveError: a rank was lost.
        """
        return self._begin(self._message("send to", peer, tag, start))

    def receive(self, peer: int, tag: int, start: Start) -> Message:
        """Give what `start` will start, which receives from a rank.

        Raises:
            CollectiveError: a rank was lost.
        """
        return self._begin(self._message(_RECEIVE, peer, tag, start))

    def receive_from_any(self, tag: int, start: Callable[[], Any]) -> Any:
        """What `start` gives, which receives from any rank; it takes no message from a receive that was called before.

        Raises:
            CollectiveError: a rank was lost.
            RuntimeError: gloo's.
        """
        self._check()
        with self._changing:
            before = [message for waiting in self._waiting.values() for message in waiting if message.may_take(tag)]
        for message in before:
            message.await_begin(None)
        try:
            return start()
        except RuntimeError as failure:
            raise self._lost(GRACE) or failure from None

    def carry(self, call: Callable[[], None]) -> None:
        """Carry out what blocks in gloo, unless a rank is lost meanwhile.

        Raises:
            CollectiveError: a rank was lost.
            RuntimeError: gloo's.
        """
        self._check()
        failures: list[Exception] = []
        ended = threading.Event()

        def run() -> None:
            try:
                call()
            except Exception as error:
                failures.append(error)
            ended.set()

        threading.Thread(target=run, name="catchment-carry", daemon=True).start()
        watched(ended.wait, self._lost, None)
        for failure in failures:
            raise self._lost(GRACE) or failure from None

    def _check(self) -> None:
        error = self._lost(0.0)
        if error is not None:
            raise error

    def _begin(self, message: Message) -> Message:
        self._check()
        with self._changing:
            waiting = self._waiting.get(message.peer)
            if waiting is not None:
                waiting.append(message)
                return message
            if message.peer not in self._met:
                waiting = deque([message])
                ours = (message.peer, waiting)
                threading.Thread(target=self._meet, args=ours, name="catchment-contact", daemon=True).start()
                self._waiting[message.peer] = waiting
                return message
        message.begin()
        return message

    def _meet(self, peer: int, waiting: deque[Message]) -> None:
        while True:
            waiting[0].begin()
            with self._changing:
                if waiting.popleft().has_started:
                    self._met.add(peer)
                if not waiting:
                    del self._waiting[peer]
                    return
