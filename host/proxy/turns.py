"""The GOs of a group, in the order of their numbers, whatever order they come in."""

from __future__ import annotations

import threading

from catchment.host.proxy.leader import Go


class Turns:
    """Any thread puts; one takes."""

    def __init__(self) -> None:
        """Number 0 is first."""
        self._changed = threading.Condition()
        self._there: dict[int, Go] = {}
        self._next = 0
        self._over = False

    def put(self, go: Go) -> None:
        """It has come."""
        with self._changed:
            self._there[go.number] = go
            self._changed.notify_all()

    def end(self) -> None:
        """Nothing more is to be done."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def take(self) -> Go | None:
        """Wait for the next number; None: the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or self._next in self._there)
            go = self._there.pop(self._next, None)
            self._next += 1
            return go
