"""The splits of jobs under the controller: every worker that takes part calls, then all get theirs (MPI_Comm_split)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.jobs import Choice, SplitCall


@dataclass(slots=True)
class Gathering:
    """The choices of workers for one split, until every one that takes part has made its own.

    Attributes:
        choices: host -> what it chose.
        outcome: the job with the parts of the split, once they are on the switches.
    """

    choices: dict[str, Choice] = field(default_factory=dict)
    outcome: asyncio.Future[JobRecord] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def __post_init__(self) -> None:
        self.outcome.add_done_callback(lambda done: done.cancelled() or done.exception())  # callers may be gone


class Splits:
    """The splits of one job that are under way."""

    def __init__(self) -> None:
        self._gatherings: dict[SplitCall, Gathering] = {}

    def choose(self, call: SplitCall, host: str, choice: Choice) -> Gathering:
        """Note a worker's choice.

        Raises:
            ControllerError: it has chosen otherwise in this split, which is still under way.
        """
        gathering = self._gatherings.setdefault(call, Gathering())
        before = gathering.choices.setdefault(host, choice)
        if before != choice:
            raise ControllerError(f"{host} has called {call} already, with color {before.color}")
        return gathering

    def withdraw(self, call: SplitCall, host: str, gathering: Gathering) -> None:
        """Take a choice back whose worker waits no longer; too late once every worker has chosen."""
        if self._gatherings.get(call) is gathering:
            gathering.choices.pop(host, None)

    def close(self, call: SplitCall) -> Mapping[str, Choice]:
        """The choices of a split that every worker has called; a worker that calls it from here on begins it anew."""
        return self._gatherings.pop(call).choices

    def fail(self, cause: str) -> None:
        """End every split that is under way."""
        for call, gathering in self._gatherings.items():
            if not gathering.outcome.done():
                gathering.outcome.set_exception(ControllerError(f"{call} was broken off: {cause}"))
        self._gatherings.clear()
