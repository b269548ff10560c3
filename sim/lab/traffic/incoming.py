"""The consumer's side of a player: what arrives is kept in a window, handed over in order, and acknowledged."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.serial import MODULUS

HEARTBEAT_SECONDS = 0.01
_LAST_WORDS_SECONDS = 0.5

Item = TypeVar("Item")


class Incoming(Generic[Item]):
    """Receives `count` items, from sequence number 0.

    Args:
        port: where.
        sender: own addresses, for heartbeats.
        gen: generation of the stream.
        wid: worker index, for people reading a capture.
        window: sequence numbers that it keeps beyond the first missing one.
        count: how many it waits for.
        take: called with each sequence number and item, once and in order.
        name: what messages call it.
        patience: seconds without progress after which to give up.

    Attributes:
        expected: the first sequence number that is missing.
        extra: items that came again, or too early.
    """

    def __init__(
        self,
        port: PacedPort,
        sender: Sender,
        *,
        gen: int,
        wid: int,
        window: int,
        count: int,
        take: Callable[[int, Item], None],
        name: str,
        patience: float,
    ) -> None:
        self.expected = 0
        self.extra = 0
        self._port, self._sender = port, sender
        self._gen, self._wid, self._window, self._count = gen, wid, window, count
        self._take, self._name, self._patience = take, name, patience
        self._kept: dict[int, Item] = {}
        self._last_progress, self._last_heartbeat = time.monotonic(), 0.0

    @property
    def complete(self) -> bool:
        """Everything came."""
        return self.expected == self._count

    def beat(self) -> None:
        """Send the heartbeat that is due.

        Raises:
            TimeoutError: nothing new for longer than patience.
        """
        now = time.monotonic()
        if now - self._last_heartbeat >= HEARTBEAT_SECONDS:
            self._heartbeat()
            self._last_heartbeat = now
        if not self.complete and now - self._last_progress > self._patience:
            raise TimeoutError(f"{self._name} {self.expected} does not come for {self._patience:g} s")

    def offer(self, seq: int, item: Item) -> None:
        """Keep an item that came, and hand over what is in order."""
        if (seq - self.expected) % MODULUS >= self._window or seq in self._kept:
            self.extra += 1
            return
        self._kept[seq] = item
        while self.expected in self._kept:
            self._take(self.expected, self._kept.pop(self.expected))
            self.expected += 1
            self._last_progress = time.monotonic()

    def last_words(self) -> None:
        """The last acknowledgement must reach everyone, and may be lost: say it for a while."""
        until = time.monotonic() + _LAST_WORDS_SECONDS
        while time.monotonic() < until:
            self._heartbeat()
            self._port.receive(HEARTBEAT_SECONDS)

    def _heartbeat(self) -> None:
        credit = (self.expected + self._window) % MODULUS
        self._port.send(self._sender.heartbeat(self.expected, credit, gen=self._gen, wid=self._wid))
