"""A worker of p4sgd.p4: rounds in slots, PA -> FA, ACK -> CNF (P4SGD's Algorithm 3, docs/explanation/protocol.md).

Slot i carries the rounds i, i + T, i + 2T ...; the next one only after the confirmation of the last.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.serial import MODULUS
from catchment.sim.lab.traffic.values import fault, value
from catchment.wire.generated.constants import Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment

SLOTS_KIND = "slots"
"""What a job description says of a job on p4sgd.p4."""

_TIMEOUT = 0.05
_GLANCE = 0.0005


@dataclass(slots=True)
class RoundCount:
    """What became of a worker's rounds.

    Attributes:
        started: vectors sent, each counted once.
        right: sums that are what all workers' vectors add up to.
        wrong: sums that are not.
        confirmed: rounds that every worker has.
        resent: frames that were sent again.
        stray: answers that nobody waited for: duplicates, mostly.
        first_fault: what was wrong with the first wrong sum.
    """

    started: int = 0
    right: int = 0
    wrong: int = 0
    confirmed: int = 0
    resent: int = 0
    stray: int = 0
    first_fault: str | None = None


@dataclass(slots=True)
class _Round:
    """A round under way: what it waits for, what goes out again meanwhile, and when."""

    number: int
    waits_for: PacketType
    again: list[bytes]
    due: float


class RoundWorker:
    """Plays one worker.

    Args:
        port: where.
        sender: own addresses.
        description: what the job tells this member; its only stream is the one with the slots.
    """

    def __init__(self, port: PacedPort, sender: Sender, description: Mapping[str, Any]) -> None:
        self.count = RoundCount()
        self._port = port
        self._sender = sender
        self._stream = stream_of(description)
        self._wid: int = description["wid"]
        self._open: dict[int, _Round] = {}
        self._waiting: deque[int] = deque()

    def play(self, rounds: int, patience: float) -> RoundCount:
        """Take part in `rounds` rounds, or in as many as the pace's time allows.

        Raises:
            TimeoutError: nothing new for `patience` seconds; names the rounds that wait.
        """
        self._waiting.extend(range(min(self._stream["slots"], rounds)))
        last_progress = time.monotonic()
        while (self._waiting or self._open) and not self._port.over:
            if self._waiting:
                self._start(self._waiting.popleft())
                last_progress = time.monotonic()
            # Answers are taken while vectors still go out.
            heard = self._port.receive_ours(_GLANCE if self._waiting else _TIMEOUT / 5, self._stream["gen"])
            if heard is not None and self._take(heard, rounds):
                last_progress = time.monotonic()
            self._resend()
            if time.monotonic() - last_progress > patience:
                stuck = ", ".join(f"{r.number} (no {r.waits_for.name})" for r in list(self._open.values())[:4])
                raise TimeoutError(f"worker {self._wid}: nothing new for {patience:g} s; rounds that wait: {stuck}")
        return self.count

    def _start(self, number: int) -> None:
        time.sleep(self._port.lateness())
        self._port.send(self._vector(number, Flag(0)))
        self._wait(number, PacketType.FA, [self._vector(number, Flag.RETX)])
        self.count.started += 1

    def _take(self, heard: Catchment, rounds: int) -> bool:
        """An answer is taken only by the round that waits for it; anything else is a duplicate."""
        slot = heard.seq % self._stream["slots"]
        under_way = self._open.get(slot)
        if under_way is None or under_way.number % MODULUS != heard.seq or under_way.waits_for != heard.type:
            self.count.stray += 1
            return False
        if heard.type == PacketType.FA:
            self._check(heard)
            acknowledgement = self._acknowledgement(under_way.number)
            self._port.send(acknowledgement)
            # The vector too: a switch that was restarted has lost the sum that others may still wait for.
            self._wait(under_way.number, PacketType.CNF, [*under_way.again, acknowledgement])
        else:
            del self._open[slot]
            self.count.confirmed += 1
            if under_way.number + self._stream["slots"] < rounds:
                self._waiting.append(under_way.number + self._stream["slots"])
        return True

    def _check(self, heard: Catchment) -> None:
        problem = fault(heard.seq, heard.payload.values, self._stream["workers"])
        if problem is None:
            self.count.right += 1
        else:
            self.count.wrong += 1
            self.count.first_fault = self.count.first_fault or problem

    def _wait(self, number: int, answer: PacketType, again: list[bytes]) -> None:
        due = time.monotonic() + _TIMEOUT
        self._open[number % self._stream["slots"]] = _Round(number, answer, again, due)

    def _resend(self) -> None:
        now = time.monotonic()
        for waiting in self._open.values():
            if now >= waiting.due:
                for frame in waiting.again:
                    self._port.send(frame)
                waiting.due = time.monotonic() + _TIMEOUT
                self.count.resent += len(waiting.again)

    def _vector(self, number: int, flags: Flag) -> bytes:
        values = [value(self._wid, number, lane) for lane in range(self._stream["lanes"])]
        common = {"gen": self._stream["gen"], "wid": self._wid, "seq": number % MODULUS}
        return bytes(self._sender.vector(values, **common, flags=flags))

    def _acknowledgement(self, number: int) -> bytes:
        fields = {"type": PacketType.ACK, "gen": self._stream["gen"], "wid": self._wid, "seq": number % MODULUS}
        return bytes(self._sender.frame(**fields))


def stream_of(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stream whose vectors are added, of what a job tells a member.

    Raises:
        ValueError: there is none.
    """
    for name, stream in description.items():
        if name != "parameters" and isinstance(stream, Mapping) and "gen" in stream:
            return stream
    raise ValueError("the job description has no stream whose vectors are added; is it what `catchment job show` says?")
