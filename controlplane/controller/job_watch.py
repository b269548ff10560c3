"""One job, or group of jobs, under the controller: members, what is wrong, and the notices that members wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from catchment.controlplane.controller.key_asks import KeyAsks
from catchment.controlplane.controller.roster import Roster
from catchment.controlplane.controller.settings import Timing
from catchment.controlplane.controller.splits import Splits
from catchment.controlplane.deployment.records import JobRecord, MemberRecord
from catchment.controlplane.jobs import JobGroup
from catchment.controlplane.metrics.durations import Durations

KEYS = "keys"
"""Source of the trouble that members keep others waiting for keys, or that no key can be given."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a job that the controller tells its members.

    Attributes:
        epoch: of the job.
        group: its jobs, of this epoch.
        complete: every member works in this epoch.
        trouble: which members or switches are missing, in words; empty when all is well.
        removed: the job is over.
        cause: why this epoch took the place of the one before.
        lost: hosts whose members are lost, and have not joined again.
    """

    epoch: int
    group: JobGroup
    complete: bool
    trouble: str
    removed: bool
    cause: str
    lost: tuple[str, ...]


class JobWatch:
    """A job and its members, in memory; what must survive is in the store.

    Attributes:
        record: the job.
        roster: its members.
        lock: held while members join or generations change.
        splits: that its workers are calling.
        key_asks: of its members, in this epoch.
        epoch_times: how long its generations lasted until they were replaced.
    """

    def __init__(
        self, record: JobRecord, timing: Timing, members: Iterable[MemberRecord] = (), now: float = 0.0
    ) -> None:
        self.record = record
        self.roster = Roster(record.group.hosts, record.epoch, silence=timing.silence, reunion=timing.reunion)
        self.roster.restore(members, now)
        self.lock = asyncio.Lock()
        self.splits = Splits()
        self.key_asks = KeyAsks()
        self.epoch_times = Durations()
        self._epoch_began = time.monotonic()
        self.removed = False
        self._stall_seconds = timing.stall
        self._cause = ""
        self._troubles: dict[str, str] = {}
        self._stall = ""
        self._stalled_until = 0.0
        self._changed = asyncio.Event()
        self._announced: State | None = None

    def state(self) -> State:
        """The state that the controller tells members now."""
        troubles = [*self._troubles.values(), *([self._stall] if self._stall else [])]
        return State(
            epoch=self.record.epoch,
            group=self.record.group,
            complete=self.roster.complete,
            trouble="; ".join(dict.fromkeys(troubles)),
            removed=self.removed,
            cause=self._cause,
            lost=self.roster.lost,
        )

    def announce(self) -> None:
        """Wake the members' calls that wait for news, if there are any."""
        state = self.state()
        if state != self._announced:
            self._announced = state
            self._changed.set()
            self._changed = asyncio.Event()

    async def news(self, known: State | None) -> State:
        """The state, once it differs from the known one."""
        while (state := self.state()) == known:
            await self._changed.wait()
        return state

    def renew(self, record: JobRecord, cause: str) -> None:
        """Take over the job's new generations."""
        self.record, self._cause = record, cause
        now = time.monotonic()
        self.epoch_times.add(now - self._epoch_began)
        self._epoch_began = now
        self.roster.renew(record.epoch)
        self.splits.fail(cause)
        self.key_asks = KeyAsks()
        self.settle(KEYS)

    def trouble(self, source: str, text: str) -> None:
        """Note what is wrong with the job, until `settle` is called for the same `source`."""
        self._troubles[source] = text

    def settle(self, source: str) -> None:
        """End the trouble that `trouble` noted for `source`."""
        self._troubles.pop(source, None)

    def stall(self, text: str, now: float) -> None:
        """Note that a member reported a stall; it is forgotten unless a member reports it again."""
        self._stall, self._stalled_until = text, now + self._stall_seconds

    def forget_stall(self, now: float) -> None:
        """Forget a stall that was not reported again in time; the controller calls this now and then."""
        if self._stall and now > self._stalled_until:
            self._stall = ""
