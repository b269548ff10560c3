"""The members of a job as they join, beat, leave and are lost. The roster has no clock: the caller passes the time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.deployment.records import MemberRecord


class Presence(StrEnum):
    """What is known of a member."""

    ABSENT = "absent"
    JOINED = "joined"
    LEFT = "left"
    LOST = "lost"


@dataclass(slots=True)
class Seat:
    """A member's place in a job.

    Attributes:
        host: its host.
        presence: what is known of it.
        epoch: the last epoch whose generations it was told; it may use them once only.
        working: the epoch in its latest beat.
        session: hash of the secret that names it.
        heard: when it was heard last.
        detached: its connection broke since.
    """

    host: str
    presence: Presence = Presence.ABSENT
    epoch: int = 0
    working: int = 0
    session: bytes = b""
    heard: float = 0.0
    detached: bool = False

    def record(self) -> MemberRecord:
        """What is stored of it."""
        return MemberRecord(self.host, self.presence, self.epoch, self.session)


class Roster:
    """The members of one job in its present epoch.

    Args:
        hosts: who may join.
        epoch: of the job.
        silence: seconds after which a member that was not heard is lost.
        reunion: seconds in which a member whose connection broke may come back; less than `silence`.
    """

    def __init__(self, hosts: Iterable[str], epoch: int, *, silence: float, reunion: float) -> None:
        self.epoch = epoch
        self.seats = {host: Seat(host) for host in hosts}
        self._silence = silence
        self._reunion = reunion

    def restore(self, members: Iterable[MemberRecord], now: float) -> None:
        """Take over what was stored; a member that had joined has the time of silence to be heard again."""
        for member in members:
            if member.host in self.seats:
                presence = Presence(member.state)
                self.seats[member.host] = Seat(member.host, presence, member.epoch, 0, member.session, now)

    def uses_up_epoch(self, host: str) -> bool:
        """Whether a host that joins now needs new generations: it knew these, and lost the state that went with them.

        Raises:
            RefusedError: the host is not in the job.
            ControllerError: its member is alive.
        """
        seat = self._seat(host)
        if seat.presence is Presence.JOINED:
            raise ControllerError(f"{host} has joined and is alive; end it, or wait until its loss is noticed")
        return seat.epoch == self.epoch

    def join(self, host: str, session: bytes, now: float) -> Seat:
        """Seat a member; `uses_up_epoch` says whether the epoch must be renewed before."""
        seat = self._seat(host)
        seat.presence, seat.epoch, seat.session, seat.heard = Presence.JOINED, self.epoch, session, now
        seat.working, seat.detached = 0, False
        return seat

    def beat(self, host: str, epoch: int, now: float) -> None:
        """Note a member's sign of life; an epoch that the member cannot know is not believed."""
        seat = self._seat(host)
        if seat.presence is Presence.JOINED:
            seat.heard, seat.detached = max(seat.heard, now), False
            if epoch <= self.epoch:
                seat.working = epoch

    def detach(self, host: str, now: float) -> None:
        """Note that a member's connection broke without goodbye."""
        seat = self._seat(host)
        seat.heard = min(seat.heard, now - self._silence + self._reunion)
        seat.detached = True

    def leave(self, host: str) -> Seat:
        """Note that a member has finished."""
        seat = self._seat(host)
        if seat.presence is Presence.JOINED:
            seat.presence = Presence.LEFT
        return seat

    def give_up(self, host: str) -> None:
        """Note that a member is lost, as somebody on its host says."""
        seat = self._seat(host)
        if seat.presence is Presence.JOINED:
            seat.presence = Presence.LOST

    def excuse(self, late: float, now: float) -> None:
        """Count `late` seconds, in which the controller did not listen to any member, as no member's silence."""
        for seat in self.seats.values():
            seat.heard = min(seat.heard + late, now)

    def lose(self, now: float) -> list[Seat]:
        """Members that have become lost since the last call."""
        lost = [s for s in self.seats.values() if s.presence is Presence.JOINED and now - s.heard > self._silence]
        for seat in lost:
            seat.presence = Presence.LOST
        return lost

    def renew(self, epoch: int) -> None:
        """Begin a new epoch; the members that have joined learn its generations."""
        self.epoch = epoch
        for seat in self.seats.values():
            if seat.presence is Presence.JOINED:
                seat.epoch = epoch

    @property
    def lost(self) -> tuple[str, ...]:
        """Hosts whose members are lost, and have not joined again."""
        return tuple(host for host, seat in self.seats.items() if seat.presence is Presence.LOST)

    @property
    def complete(self) -> bool:
        """Every member works in the present epoch."""
        return all(s.presence is Presence.JOINED and s.working == self.epoch for s in self.seats.values())

    def _seat(self, host: str) -> Seat:
        try:
            return self.seats[host]
        except KeyError:
            raise RefusedError(f"host {host} is not in this job") from None
