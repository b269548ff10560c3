"""Finds the members that hold a job up, from the switches' counters and, where they can be read, their registers."""

from __future__ import annotations

import asyncio
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
    plan = watch.record.plan
    found: dict[str, str] = {}
    for branch in plan.tree:
        agent = switches[branch.switch]
        if agent.detail:
            found[branch.switch] = agent.detail
    for host, seat in watch.roster.seats.items():
        if seat.presence is not Presence.JOINED:
            found[host] = {
                Presence.ABSENT: f"{host} has not joined",
                Presence.LEFT: f"{host} has left",
                Presence.LOST: f"{host} is lost",
            }[seat.presence]
    for branch in plan.tree:
        samples = switches[branch.switch].samples(_SILENCE)
        if samples is not None:
            for silent in silent_members(plan, branch, *samples):
                found.setdefault(silent.member, str(silent))
    clients = {b.switch: c for b in plan.tree if (c := switches[b.switch].client) is not None}
    try:
        waiting = await asyncio.to_thread(waiting_for, plan, clients)
    except SwitchError:
        waiting = []  # it has just gone: its agent says so
    lines = list(found.values())
    for wait in waiting:
        if not any(member in found for member in wait.members):
            lines.append(str(wait))
            found.update((member, "") for member in wait.members if member in watch.roster.seats)
    return Verdict(tuple(found), "; ".join(lines))
