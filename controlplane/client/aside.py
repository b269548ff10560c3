"""Calls that Ctrl-C does not cut in two: for the main thread another one makes them, and goes on with what was begun.

The exception of a signal comes between any two steps of the main thread. Within gRPC it leaves a lock taken or an event
that nobody fetches, and to close the channel then takes for ever.
"""

from __future__ import annotations

import _thread
import contextlib
import queue
import threading
import weakref
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
_Asked = TypeVar("_Asked")
CLOSE_SECONDS = 3.0
"""How long a connection may take to close."""
_LOOK_SECONDS = 0.5
_Order = tuple[Callable[[], Any], "queue.SimpleQueue[tuple[bool, Any]]"]


class Aside:
    """Makes calls one after the other: one that the main thread no longer waits for ends before the next begins.

    Other threads, which no signal reaches, make theirs themselves. The thread starts with the first
    call, and ends with this object.
    """

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[_Order | None] = queue.SimpleQueue()
        self._works = False
        self._one = _thread.allocate_lock()
        weakref.finalize(self, self._orders.put, None)

    def __call__(self, function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
        """What a function returns or raises."""
        if threading.current_thread() is not threading.main_thread():
            return function(*arguments, **named)
        succeeded, value = _awaited(self._order(lambda: function(*arguments, **named)))
        if not succeeded:
            try:
                raise value
            finally:
                del value  # its traceback has this frame
        result: _T = value
        return result

    def later(self, function: Callable[[], object]) -> None:
        """Call a function after those that were asked for before, and do not wait."""
        if threading.current_thread() is not threading.main_thread():
            function()
        else:
            self._order(function)

    def _order(self, function: Callable[[], object]) -> queue.SimpleQueue[tuple[bool, Any]]:
        if not self._works:
            _thread.start_new_thread(_work, (self._orders, self._one))  # one of `threading` takes a lock to start
            self._works = True
        outcome: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
        self._orders.put((function, outcome))
        return outcome


def at_once(
    ask: Callable[[_Asked], _T], about: Collection[_Asked], *, most: int, cut_short: Callable[[], object] | None = None
) -> list[_T]:
    """What a function gives for each of some things, called in so many threads at the same time.

    Ctrl-C leaves no lock taken that the threads need. No call begins after it, and those that have begun are waited
    for; `cut_short` may end them.
    """
    with ThreadPoolExecutor(max(1, min(most, len(about)))) as threads:
        try:
            return Aside()(lambda: list(threads.map(ask, about)))
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            if cut_short is not None:
                cut_short()
            raise


def within(seconds: float, function: Callable[[], object]) -> bool:
    """Do something; where the main thread asks for it, wait no longer than so many seconds. Whether it is done."""
    if threading.current_thread() is not threading.main_thread():
        function()
        return True
    outcome: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()
    _thread.start_new_thread(_carry_out, (function, outcome))
    try:
        outcome.get(timeout=seconds)
    except queue.Empty:
        return False
    return True


def _awaited(outcome: queue.SimpleQueue[_T]) -> _T:
    """Wait without a lock that Ctrl-C could leave behind, and end the wait for one that came just before it began.

    The interpreter looks for signals before it sleeps, and a signal between the look and the sleep wakes nobody.
    """
    while True:
        with contextlib.suppress(queue.Empty):
            return outcome.get(timeout=_LOOK_SECONDS)


def _work(orders: queue.SimpleQueue[_Order | None], one: _thread.LockType) -> None:
    """Carry orders out until there is none; a second thread, to which Ctrl-C at the start of the first leads, goes."""
    if not one.acquire(blocking=False):
        return
    while (order := orders.get()) is not None:
        _carry_out(*order)
        del order  # whatever it belongs to may go meanwhile


def _carry_out(function: Callable[[], Any], outcome: queue.SimpleQueue[tuple[bool, Any]]) -> None:
    try:
        outcome.put((True, function()))
    except BaseException as error:  # whoever waits raises it
        outcome.put((False, error))
