"""Queues between the steps of the pipeline; an end or a failure reaches every step."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Channel(Generic[T]):
    """First in, first out; `get` waits. What bounds it is the arena: every task holds its buffers."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._change = threading.Condition()
        self._closed = False

    def put(self, item: T) -> None:
        """Never waits."""
        with self._change:
            self._items.append(item)
            self._change.notify()

    def get(self) -> T | None:
        """The next item; None when there will be none."""
        with self._change:
            self._change.wait_for(lambda: self._closed or bool(self._items))
            return self._items.popleft() if self._items else None

    def close(self) -> None:
        """What is in it can still be taken."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def fail(self) -> None:
        """Close the queue and drop its items; nothing can be taken any more."""
        with self._change:
            self._items.clear()
            self._closed = True
            self._change.notify_all()


class Stages:
    """Threads of which the first failure ends all; `run` raises it."""

    def __init__(self, stop: Callable[[], None]) -> None:
        """`stop` wakes every thread that waits, and lets it return."""
        self._stop = stop
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self.failure: BaseException | None = None

    def start(self, name: str, body: Callable[[], None]) -> None:
        """Run `body` in a thread of its own."""
        thread = threading.Thread(target=self.guard, args=(body,), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def guard(self, body: Callable[[], None]) -> None:
        """Run `body`; what it raises ends everything."""
        try:
            body()
        except BaseException as error:  # `join` raises it
            with self._lock:
                if self.failure is None:
                    self.failure = error
            self._stop()

    def join(self, patience: float = 0.5) -> None:
        """Wait for all; after a failure only `patience` seconds each: some wait for the network, until it is closed."""
        for thread in self._threads:
            while thread.is_alive():
                thread.join(0.05 if self.failure is None else patience)
                if self.failure is not None and thread.is_alive():
                    break
        if self.failure is not None:
            raise self.failure
