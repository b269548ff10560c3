"""The sender's side of a player: new vectors as far as credit goes, and all unacknowledged ones again after a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.serial import later, newer
from catchment.wire.generated.constants import Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment

RESEND_SECONDS = 0.05


@dataclass(slots=True)
class SentCount:
    """A sender's vectors: new ones sent, those that every receiver has, and how many were sent again."""

    started: int = 0
    acknowledged: int = 0
    resent: int = 0


class Outgoing:
    """Sends `count` vectors, from sequence number 0, as fast as credit and the port's pace allow.

    Args:
        port: where.
        build: the frame with a sequence number and flags.
        count: how many.
        name: what messages call it.
        patience: seconds without progress after which to give up.
    """

    def __init__(
        self, port: PacedPort, build: Callable[[int, int], bytes], count: int, *, name: str, patience: float
    ) -> None:
        self.done = SentCount()
        self._port, self._build, self._count = port, build, count
        self._name, self._patience = name, patience
        self._credit = 0
        self._kept: dict[int, bytes] = {}
        self._last_progress = self._last_resend = time.monotonic()

    @property
    def all_acknowledged(self) -> bool:
        """Every receiver has everything."""
        return self.done.acknowledged == self._count

    def send_new(self) -> None:
        """Send what credit allows."""
        done = self.done
        while done.started != self._count and newer(self._credit, done.started) and not self._port.over:
            time.sleep(self._port.lateness())
            self._port.send(self._build(done.started, 0))
            # Scapy takes milliseconds for a vector: what may have to go out again is built now.
            self._kept[done.started] = self._build(done.started, Flag.RETX)
            done.started += 1

    def hear(self, heard: Catchment | None) -> None:
        """Take the acknowledgement and credit of a merged heartbeat or a sum; other frames say nothing."""
        if heard is None or heard.type not in (PacketType.MH, PacketType.FA) or not int(heard.flags) & Flag.ACKV:
            return
        if newer(heard.ack, self.done.acknowledged):
            self._last_progress = time.monotonic()
        self.done.acknowledged = later(heard.ack, self.done.acknowledged)
        self._credit = later(heard.credit, self._credit)

    def send_again(self) -> None:
        """Retransmit, after a while without progress, everything that not every receiver has.

        Raises:
            TimeoutError: no progress for longer than patience.
        """
        done, now = self.done, time.monotonic()
        if self.all_acknowledged:
            return
        if now - self._last_progress > self._patience:
            raise TimeoutError(
                f"{self._name}: nothing acknowledged beyond {done.acknowledged} for {self._patience:g} s"
            )
        if now - max(self._last_progress, self._last_resend) > RESEND_SECONDS:
            self._last_resend = now
            for seq in range(done.acknowledged, done.started):
                self._port.send(self._kept[seq])
                done.resent += 1
