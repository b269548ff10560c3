"""Members of a job against a slow, obvious model: who is lost, who needs new generations."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.roster import Presence, Roster
from catchment.controlplane.deployment.records import MemberRecord

HOSTS = ["w0", "w1", "opt"]
SILENCE, REUNION = 1.5, 0.5


class Members(RuleBasedStateMachine):
    """Times are in tenths of a second, so that the model has no rounding."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.roster = Roster(HOSTS, 1, silence=SILENCE, reunion=REUNION)
        self.deadline: dict[str, float] = {}  # of those who are here: when they count as lost
        self.lost: set[str] = set()
        self.knew: dict[str, int] = {}  # the last epoch whose generations a host was told
        self.epoch = 1

    def renew(self) -> None:
        self.epoch += 1
        self.roster.renew(self.epoch)
        for host in self.deadline:
            self.knew[host] = self.epoch

    @rule(host=st.sampled_from(HOSTS))
    def join(self, host: str) -> None:
        if host in self.deadline:
            try:
                self.roster.uses_up_epoch(host)
            except ControllerError:
                return
            raise AssertionError("a second member of a host that is alive")
        needed = self.knew.get(host) == self.epoch
        assert self.roster.uses_up_epoch(host) == needed
        if needed:
            self.renew()
        self.roster.join(host, host.encode(), self.now)
        self.deadline[host], self.knew[host] = self.now + SILENCE, self.epoch
        self.lost.discard(host)

    @rule(host=st.sampled_from(HOSTS), epoch=st.integers(0, 5))
    def beat(self, host: str, epoch: int) -> None:
        self.roster.beat(host, epoch, self.now)
        if host in self.deadline:
            self.deadline[host] = max(self.deadline[host], self.now + SILENCE)

    @rule(host=st.sampled_from(HOSTS))
    def detach(self, host: str) -> None:
        self.roster.detach(host, self.now)
        if host in self.deadline:
            self.deadline[host] = min(self.deadline[host], self.now + REUNION)

    @rule(host=st.sampled_from(HOSTS))
    def leave(self, host: str) -> None:
        self.roster.leave(host)
        self.deadline.pop(host, None)

    @rule(tenths=st.integers(1, 20))
    def time_passes(self, tenths: int) -> None:
        self.now += tenths / 10
        lost = {seat.host for seat in self.roster.lose(self.now)}
        # At the very moment of a deadline either is right.
        certain = {host for host, at in self.deadline.items() if self.now > at + 1e-6}
        possible = {host for host, at in self.deadline.items() if self.now > at - 1e-6}
        assert certain <= lost <= possible
        for host in lost:
            del self.deadline[host]
        self.lost |= lost
        if lost:
            self.renew()
        assert self.roster.lose(self.now) == [], "nobody is lost twice"

    @precondition(lambda self: self.deadline)
    @rule()
    def the_controller_restarts(self) -> None:
        records = [
            MemberRecord(s.host, s.presence, s.epoch, s.session)
            for s in self.roster.seats.values()
            if s.presence is not Presence.ABSENT
        ]
        self.roster = Roster(HOSTS, self.epoch, silence=SILENCE, reunion=REUNION)
        self.roster.restore(records, self.now)
        self.deadline = dict.fromkeys(self.deadline, self.now + SILENCE)

    @invariant()
    def presence_is_right(self) -> None:
        here = {host for host, seat in self.roster.seats.items() if seat.presence is Presence.JOINED}
        assert here == set(self.deadline)
        assert set(self.roster.lost) == self.lost
        if self.roster.complete:
            assert here == set(HOSTS)


TestMembers = Members.TestCase
TestMembers.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def test_a_stranger_is_refused() -> None:
    roster = Roster(HOSTS, 1, silence=1, reunion=1)
    for call in (lambda: roster.uses_up_epoch("w9"), lambda: roster.beat("w9", 1, 0.0), lambda: roster.leave("w9")):
        with pytest.raises(RefusedError, match="w9"):
            call()
