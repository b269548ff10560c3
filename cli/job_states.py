"""What `catchment job list` says of jobs where no controller does: how far each is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catchment.cli.job_switches import MOST_AT_ONCE
from catchment.cli.target import Place
from catchment.controlplane.client import SwitchError
from catchment.controlplane.client.aside import at_once
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import JobStore
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.state.desired import JOBS

UNREACHABLE, MISSING = "unreachable", "missing"
_NO_PROGRAM = (None, "FAILED_PRECONDITION")
CUT_SHORT = {
    JobState.CREATING: "it is being created, or that was cut short: `catchment job remove {}` takes off what there is",
    JobState.REMOVING: "it is being removed, or that was cut short: `catchment job remove {}` completes it",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a switch says: the generations that it admits, or why that is not known, and what to do."""

    generations: frozenset[int] = frozenset()
    trouble: str = ""


def states_of(place: Place, jobs: JobStore) -> dict[str, tuple[str, str]]:
    """Job -> its state, and what is wrong with it and what to do; empty if nothing is.

    A job that should be up is `unreachable` where one of its switches does not answer, or refuses to, and `missing`
    where one answers and does not admit its frames. Each switch of such jobs is asked once.
    """
    misfits = jobs.misfits
    asked = {
        switch
        for name, record in jobs.records.items()
        if record.state is JobState.UP and name not in misfits
        for switch in record.group.switches
    }
    seen = dict(zip(asked, at_once(_look(place), asked, most=MOST_AT_ONCE), strict=True))
    return {
        name: (str(record.state), misfits[name]) if name in misfits else _state(place, name, record, seen)
        for name, record in jobs.records.items()
    }


def _look(place: Place) -> Callable[[str], _Seen]:
    def look(switch: str) -> _Seen:
        try:
            with place.connect(switch, read_only=True) as client:
                admitted = client.read(JOBS) if client.p4info.has("table", JOBS) else []
                return _Seen(frozenset(int(entry.match["gen"]) for entry in admitted))
        except SwitchError as error:
            if error.code in _NO_PROGRAM:
                return _Seen()
            back = f"switch {switch} does not answer: `catchment net restart {switch}` brings it back"
            return _Seen(trouble=back if place.network and error.is_silence else str(error))
        except ControlPlaneError as error:
            return _Seen(trouble=str(error))

    return look


def _state(place: Place, name: str, record: JobRecord, seen: Mapping[str, _Seen]) -> tuple[str, str]:
    if record.state is not JobState.UP:
        return str(record.state), CUT_SHORT[record.state].format(name)
    for switch in record.group.switches:
        if seen[switch].trouble:
            return UNREACHABLE, seen[switch].trouble
    for switch in record.group.switches:
        own = {s.gen for plan in record.group.plans if _is_on(plan, switch) for s in plan.streams}
        if not own <= seen[switch].generations:
            restart = f"`catchment net restart {switch}` writes it again"
            renew = f"load its program if it has none, then `catchment job renew {name}` writes it again"
            return MISSING, f"switch {switch} does not have it: {restart if place.network else renew}"
    return str(record.state), ""


def _is_on(plan: JobPlan, switch: str) -> bool:
    return any(branch.switch == switch for branch in plan.tree)
