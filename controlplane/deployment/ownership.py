"""Whose a job on a switch is: of this job file, of another control plane, or of nobody.

Entries of jobs carry their job file's mark as P4Runtime metadata. An entry with another mark is another control
plane's, and left alone. So is one without a mark (BMv2 keeps none) that was there when these jobs first met the switch:
a new job file does not know what runs. Everything else that these jobs do not ask for has been put there since, or
forgotten, and goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from catchment.controlplane.client import TableEntry
from catchment.controlplane.deployment.records import Holding
from catchment.controlplane.deployment.store import JobStore
from catchment.controlplane.jobs.entries import slots_of
from catchment.controlplane.state.desired import JOBS


class Ownership:
    """Tells the entries of others on one switch.

    Args:
        jobs: those of this job file.
        switch: name of the switch.
    """

    def __init__(self, jobs: JobStore, switch: str) -> None:
        foreign = jobs.foreign(switch)
        self._mark = jobs.owner.encode()
        self._is_new = foreign is None
        self._adopted = {one.gen for one in foreign or ()}

    def is_foreign(self, entry: TableEntry) -> bool:
        """Whether an entry of `jobs` or `receivers` that these jobs do not ask for is another control plane's."""
        if entry.metadata:
            return entry.metadata != self._mark
        return self._is_new or int(entry.match["gen"]) in self._adopted


def holdings(entries: Iterable[TableEntry]) -> tuple[Holding, ...]:
    """What entries of `jobs` hold of their switch."""
    found = []
    for entry in entries:
        if entry.table == JOBS:
            base, end = slots_of(entry)
            row, group, udp = (int(entry.params.get(name, 0)) for name in ("job", "group", "src_udp"))
            gen, port = int(entry.match["gen"]), int(entry.match["port"])
            found.append(Holding(gen, port, udp, base, end - base, row, group))
    return tuple(sorted(found, key=lambda one: (one.gen, one.port)))
