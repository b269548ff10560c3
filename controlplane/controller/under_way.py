"""Work that goes on to its end, whoever waits for it.

gRPC cancels the method of a call whose client ends it, or runs out of time. A thread that writes for it meanwhile goes
on all the same; so the locks that it needs, and the memory that follows it, must outlast the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from catchment.controlplane.controller.job_watch import JobWatch
from catchment.controlplane.errors import ControlPlaneError

_log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")


class UnderWay:
    """The tasks of a controller that are kept until they are done."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task that is kept until it is done."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def finish(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        """Begin work, and wait for it: it goes on even if whoever waits is cancelled, and its error is logged then."""
        return _result(self.begin(work))

    async def end(self) -> None:
        """Wait for all that is under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)


class HasUnderWay(Protocol):
    """Whatever has methods that are `to_its_end`."""

    under_way: UnderWay


S = TypeVar("S", bound=HasUnderWay)
Method = Callable[Concatenate[S, JobWatch, P], Coroutine[Any, Any, T]]


def to_its_end(method: Method[S, P, T]) -> Method[S, P, T]:
    """Have a method hold the lock of its job, and go on to its end even if its caller is cancelled.

    A caller that is cancelled while it waits for the lock has asked for nothing: however many calls a client begins and
    ends, they are not done one after the other for nobody.
    """

    @wraps(method)
    async def call(self: S, watch: JobWatch, /, *args: P.args, **kwargs: P.kwargs) -> T:
        await watch.lock.acquire()
        return await self.under_way.finish(_releasing(watch.lock, method(self, watch, *args, **kwargs)))

    return call


async def _result(task: asyncio.Task[T]) -> T:
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(_log_error)
        raise


async def _releasing(lock: asyncio.Lock, work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    finally:
        lock.release()


def _log_error(task: asyncio.Task[Any]) -> None:
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, ControlPlaneError):
        _log.warning("a client left, and what it had asked for failed: %s", error)
    else:
        _log.error("a client left, and what it had asked for failed", exc_info=error)
