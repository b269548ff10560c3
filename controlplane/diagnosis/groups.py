"""Diagnosis of a group of jobs as one thing: a member that sends in one of its jobs is not silent in an idle one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from threading import Event
from typing import TypeVar

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.client.aside import at_once
from catchment.controlplane.diagnosis.doctor import Examination, Finding, examine_one
from catchment.controlplane.diagnosis.waiting import Missing, diagnose
from catchment.controlplane.jobs import JobGroup, JobPlan
from catchment.controlplane.topology import Topology

_MOST_AT_ONCE = 32
_Found = TypeVar("_Found")
_Clients = Mapping[str, SwitchClient]
_Pause = Callable[[float], object]


def examine_group(
    group: JobGroup,
    topology: Topology,
    clients: _Clients,
    *,
    interval: float = 1.0,
    absent: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Look at the switches of all jobs of a group at the same time; arguments as `doctor.examine_one`."""

    def look(job: JobPlan, own: _Clients, pause: _Pause) -> Examination:
        away = {host: state for host, state in (absent or {}).items() if host in job.ports}
        return examine_one(job, topology, own, interval=interval, absent=away, pause=pause)

    examined = _of_each(group, clients, look)
    moves = any(one.moves for one in examined)
    standstill = [] if moves else [finding for one in examined for finding in one.standstill]
    found = [one.findings for one in examined]
    silent = _silent_throughout(group, [{one.subject for one in findings if one.silence} for findings in found])
    kept = (one for findings in found for one in findings if not one.silence or one.subject in silent)
    trouble = _once(kept, lambda one: one.what if not one.silence else one.subject)
    return [*trouble, *_once(standstill, lambda one: one.subject)]


def diagnose_group(group: JobGroup, clients: _Clients, *, interval: float = 0.5) -> list[Missing]:
    """Find the members of a group that send nothing in any of their jobs; arguments as `waiting.diagnose`."""
    found = _of_each(group, clients, lambda job, own, pause: diagnose(job, own, interval=interval, pause=pause))
    silent = _silent_throughout(group, [{one.member for one in missing} for missing in found])
    kept = (one for missing in found for one in missing if one.packets is None or one.member in silent)
    return _once(kept, lambda one: one.member)


def _of_each(group: JobGroup, clients: _Clients, look: Callable[[JobPlan, _Clients, _Pause], _Found]) -> list[_Found]:
    ended = Event()

    def of(job: JobPlan) -> _Found:
        own = {branch.switch: clients[branch.switch] for branch in job.tree if branch.switch in clients}
        return look(job, own, ended.wait)

    plans = _summed_by_switches(group)
    return at_once(of, plans, most=_MOST_AT_ONCE, cut_short=ended.set)  # after Ctrl-C no longer than their calls take


def _summed_by_switches(group: JobGroup) -> list[JobPlan]:
    """The jobs that switches can tell about: not rings."""
    return [plan for plan in group.plans if plan.ring is None]


def _silent_throughout(group: JobGroup, silent: list[set[str]]) -> Collection[str]:
    """The names that are silent in every job that they are in; `silent` in the order of the group's jobs."""
    ins = [{*plan.ports, *(branch.switch for branch in plan.tree)} for plan in _summed_by_switches(group)]
    names = set().union(*silent)
    return {
        name
        for name in names
        if all(name in quiet for quiet, members in zip(silent, ins, strict=True) if name in members)
    }


def _once(found: Iterable[_Found], key: Callable[[_Found], str]) -> list[_Found]:
    kept: dict[str, _Found] = {}
    for one in found:
        kept.setdefault(key(one), one)
    return list(kept.values())
