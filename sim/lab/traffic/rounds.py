"""A worker of p4sgd.p4: rounds in slots, PA -> FA, ACK -> CNF (P4SGD's Algorithm 3, docs/explanation/protocol.md).

Slot i carries the rounds i, i + T, i + 2T ...; the next one only after the confirmation of the last, and of all rounds
before that. Each frame says the oldest round whose sum is not here: the switch bounds rounds by the least that it was
told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
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
    again: list[Callable[[], bytes]]
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
        self._lacks = 0
        self._summed: set[int] = set()
        self._next = 0

    def play(self, rounds: int, patience: float) -> RoundCount:
        """Take part in `rounds` rounds, or in as many as the pace's time allows.

        Raises:
            TimeoutError: nothing new for `patience` seconds; names the rounds that wait.
        """
        last_progress = time.monotonic()
        while (self._next < rounds or self._open) and not self._port.over:
            if more := self._next < rounds and self._has_room():
                self._start(self._next)
                self._next += 1
                last_progress = time.monotonic()
            # Answers are taken while vectors still go out.
            heard = self._port.receive_ours(_GLANCE if more else _TIMEOUT / 5, self._stream["gen"])
            if heard is not None and self._take(heard):
                last_progress = time.monotonic()
            self._resend()
            if time.monotonic() - last_progress > patience:
                stuck = ", ".join(f"{r.number} (no {r.waits_for.name})" for r in list(self._open.values())[:4])
                raise TimeoutError(f"worker {self._wid}: nothing new for {patience:g} s; rounds that wait: {stuck}")
        return self.count

    def _has_room(self) -> bool:
        """Whether the next round may begin: the last one in its slot was confirmed, and all before that."""
        oldest = min((under_way.number for under_way in self._open.values()), default=self._next)
        return self._next - oldest < int(self._stream["slots"])

    def _start(self, number: int) -> None:
        time.sleep(self._port.lateness())
        self._port.send(self._vector(number, Flag(0)))
        self._wait(number, PacketType.FA, [lambda: self._vector(number, Flag.RETX)])
        self.count.started += 1

    def _take(self, heard: Catchment) -> bool:
        """An answer is taken only by the round that waits for it; anything else is a duplicate."""
        slot = heard.seq % self._stream["slots"]
        under_way = self._open.get(slot)
        if under_way is None or under_way.number % MODULUS != heard.seq or under_way.waits_for != heard.type:
            self.count.stray += 1
            return False
        if heard.type == PacketType.FA:
            self._check(heard)
            self._summed.add(under_way.number)
            while self._lacks in self._summed:
                self._summed.remove(self._lacks)
                self._lacks += 1
            number = under_way.number
            self._port.send(self._acknowledgement(number))
            # The vector too: a switch that was restarted has lost the sum that others may still wait for.
            self._wait(number, PacketType.CNF, [*under_way.again, lambda: self._acknowledgement(number)])
        else:
            del self._open[slot]
            self.count.confirmed += 1
        return True

    def _check(self, heard: Catchment) -> None:
        problem = fault(heard.seq, heard.payload.values, self._stream["workers"])
        if problem is None:
            self.count.right += 1
        else:
            self.count.wrong += 1
            self.count.first_fault = self.count.first_fault or problem

    def _wait(self, number: int, answer: PacketType, again: list[Callable[[], bytes]]) -> None:
        due = time.monotonic() + _TIMEOUT
        self._open[number % self._stream["slots"]] = _Round(number, answer, again, due)

    def _resend(self) -> None:
        now = time.monotonic()
        for waiting in self._open.values():
            if now >= waiting.due:
                for again in waiting.again:
                    self._port.send(again())
                waiting.due = time.monotonic() + _TIMEOUT
                self.count.resent += len(waiting.again)

    def _vector(self, number: int, flags: Flag) -> bytes:
        values = [value(self._wid, number, lane) for lane in range(self._stream["lanes"])]
        return bytes(self._sender.vector(values, **self._common(number, flags)))

    def _acknowledgement(self, number: int) -> bytes:
        return bytes(self._sender.frame(type=PacketType.ACK, **self._common(number, Flag(0))))

    def _common(self, number: int, flags: Flag) -> dict[str, Any]:
        """The fields of every frame of a round; `ack` is the oldest round whose sum is not here."""
        return {
            "gen": self._stream["gen"],
            "wid": self._wid,
            "seq": number % MODULUS,
            "flags": int(flags | Flag.ACKV),
            "ack": self._lacks % MODULUS,
        }


def stream_of(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stream whose vectors are added, of what a job tells a member.

    Raises:
        ValueError: there is none.
    """
    for name, stream in description.items():
        if name != "parameters" and isinstance(stream, Mapping) and "gen" in stream:
            return stream
    raise ValueError("the job description has no stream whose vectors are added; is it what `catchment job show` says?")
