"""How the rails of jobs are, as the ranks of this machine say: all ranks of a job agree, so any one speaks for it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from pathlib import Path

from catchment.controlplane.diagnosis.doctor import Finding
from catchment.controlplane.diagnosis.stats import RailUse
from catchment.controlplane.jobs import JobGroup
from catchment.wire.rail_report import SOCKETS, RankReport
from catchment.wire.run_folder import run_folder

_PATIENCE = 2.0
"""Seconds that a rank has to answer, to the end."""
_LONGEST = 1 << 20
"""Bytes of an answer; a report is some thousand."""
_SUMS = "sums"


def ranks_of(group: JobGroup) -> list[RankReport]:
    """What the ranks of a group on this machine say of its rails, by rank; not those of older generations."""
    gens = {rail: group.parts[rail].stream(_SUMS).gen for rail in rails_of(group)}
    found = [
        report
        for report in all_reports()
        if report.job == group.name and all(gens.get(rail.name) == rail.generation for rail in report.rails)
    ]
    return sorted(found, key=lambda report: report.rank)


def rails_of(group: JobGroup) -> list[str]:
    """The rails over which a group's operations are split; none where it is on one."""
    return [rail for rail in group.rails if rail in group.parts]


def all_reports() -> list[RankReport]:
    """What every rank of this machine says that has several rails."""
    answers = (_ask(path) for path in sorted(run_folder().glob(SOCKETS)))
    return [answer for answer in answers if answer is not None]


def rails_at(switch: str, groups: Iterable[JobGroup]) -> tuple[RailUse, ...]:
    """The rails whose sums a switch makes, as the first rank of this machine of each group says.

    A ring is listed at the switch of its first member.
    """
    found = []
    for group in groups:
        here = [rail for rail in rails_of(group) if group.parts[rail].carriers[0] == switch]
        ranks = ranks_of(group) if here else []
        if ranks:
            found += [use for use in uses(ranks[0]) if use.report.name in here]
    return tuple(found)


def uses(rank: RankReport) -> list[RailUse]:
    """The rails of a rank, each with its share of what they have carried."""
    carried = max(1, sum(rail.bytes for rail in rank.rails))
    return [RailUse(rank.job, rank.rank, rail, rail.bytes / carried) for rail in rank.rails]


def examine_rails(group: JobGroup) -> list[Finding]:
    """Rails that are broken or on probation, as the first rank of this machine says."""
    ranks = ranks_of(group)
    return [finding for use in uses(ranks[0]) for finding in _trouble(group, use)] if ranks else []


def _trouble(group: JobGroup, use: RailUse) -> list[Finding]:
    rail = use.report
    switches = " and ".join(group.parts[rail.name].carriers)
    said = f"rail {rail.name} of job {use.job}"
    if rail.state == "probation":
        what = f"{said} answers again and is on probation, says rank {use.rank}"
        return [Finding(switches, what, "nothing: it is used again by itself", certain=False)]
    if rail.state != "down":
        return []
    if not rail.joined:
        what = f"{said} was never up, says rank {use.rank}: operations go on without it"
        return [Finding(switches, what, f"look at {switches}, and at the members' addresses and links on that rail")]
    times = "once" if rail.incidents == 1 else f"{rail.incidents} times"
    what = (
        f"{said} is down, says rank {use.rank}: its operations go over rail {rail.carrier}; it was found broken "
        f"{times}, the last time within {1e3 * rail.last_incident:.0f} ms"
    )
    todo = f"look at {switches} and the members' links to it (`catchment stats`, `catchment fault list`)"
    return [Finding(switches, what, todo)]


def _ask(path: Path) -> RankReport | None:
    until, said = time.monotonic() + _PATIENCE, b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as rank:
        try:
            rank.settimeout(_PATIENCE)
            rank.connect(str(path))
            while len(said) <= _LONGEST and (left := until - time.monotonic()) > 0:
                rank.settimeout(left)
                if not (more := rank.recv(1 << 16)):
                    return RankReport.from_json(said.decode())
                said += more
        except (OSError, ValueError):
            pass  # its process was killed, or is of another version
    return None
