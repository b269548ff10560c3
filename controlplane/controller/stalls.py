"""Finds the members that hold a job up, from the switches' counters and, where they can be read, their registers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from catchment.controlplane.client import SwitchError
from catchment.controlplane.controller.job_watch import JobWatch
from catchment.controlplane.controller.roster import Presence
from catchment.controlplane.controller.switches import SAMPLE_SECONDS, SwitchAgent
from catchment.controlplane.diagnosis.waiting import silent_members, waiting_for

EVERYBODY_SENDS = "waits, and every member is sending"
"""What the controller says of a member that reports a stall when no member is missing."""
_SILENCE = SAMPLE_SECONDS / 2
"""Every member of an unfinished job sends many times in this time; samples lie twice as far apart."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The members and switches that a job misses.

    Attributes:
        missing: names of hosts and switches.
        text: in words; empty when none is known to be missing.
    """

    missing: tuple[str, ...]
    text: str


async def judge(watch: JobWatch, switches: Mapping[str, SwitchAgent]) -> Verdict:
    """Name the members and switches that a job waits for."""
    group = watch.record.group
    found: dict[str, str] = {}
    for switch in group.switches:
        agent = switches[switch]
        if agent.detail:
            found[switch] = agent.detail
    for host, seat in watch.roster.seats.items():
        if seat.presence is not Presence.JOINED:
            found[host] = {
                Presence.ABSENT: f"{host} has not joined",
                Presence.LEFT: f"{host} has left",
                Presence.LOST: f"{host} is lost",
            }[seat.presence]
    clients = {name: client for name in group.switches if (client := switches[name].client) is not None}
    waiting = []
    silence: dict[str, list[str]] = {}
    seen: Counter[str] = Counter()
    for plan in group.plans:
        for branch in plan.tree:
            samples = switches[branch.switch].samples(_SILENCE)
            if samples is not None:
                seen.update(member for _, member in branch.members)
                for silent in silent_members(plan, branch, *samples):
                    silence.setdefault(silent.member, []).append(str(silent))
        with contextlib.suppress(SwitchError):  # it has just gone: its agent says so
            own = {branch.switch: clients[branch.switch] for branch in plan.tree if branch.switch in clients}
            waiting += await asyncio.to_thread(waiting_for, plan, own)
    # A job of a group may lie idle: a member that sends in another one is not silent.
    for member, said in silence.items():
        if len(said) >= seen[member]:
            found.setdefault(member, said[0])
    lines = list(found.values())
    for wait in waiting:
        if not any(member in found for member in wait.members):
            lines.append(str(wait))
            found.update((member, "") for member in wait.members if member in watch.roster.seats)
    return Verdict(tuple(found), "; ".join(lines))
