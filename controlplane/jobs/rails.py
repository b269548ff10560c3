"""Which rail a job runs on: every member needs a NIC there."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.tree import Load
from catchment.controlplane.topology import Topology


def choose_rail(name: str, topology: Topology, members: Sequence[str], wanted: str | None, load: Load) -> str | None:
    """The rail of a job: the wanted one, or the one whose switches do least.

    Args:
        name: of the job, for messages.
        topology: all of it.
        members: host names.
        wanted: the rail that was asked for.
        load: how much a switch does already.

    Returns:
        None where the topology has no rails.

    Raises:
        JobError: no such rail, or no rail has a NIC of every member; says who has which.
        TopologyError: no such host.
    """
    nics = {member: {topology.rail_of(n.link.switch): n for n in topology.host(member).nics} for member in members}
    if not topology.rails:
        if wanted is not None:
            raise JobError(f"job {name}: topology {topology.name} has no rails, so there is no rail {wanted}")
        return None
    if wanted is not None and wanted not in topology.rails:
        raise JobError(
            f"job {name}: no rail {wanted!r} in topology {topology.name}; it has: {', '.join(topology.rails)}"
        )
    shared = [rail for rail in topology.rails if all(rail in nics[member] for member in members)]
    if wanted is not None and wanted not in shared:
        absent = ", ".join(member for member in members if wanted not in nics[member])
        raise JobError(f"job {name}: {absent} has no NIC on rail {wanted}")
    if not shared:
        have = "; ".join(f"{member}: {', '.join(map(str, nics[member]))}" for member in members)
        raise JobError(f"job {name}: no rail has a NIC of every member ({have})")

    def work(rail: str) -> tuple[int, ...]:
        loads = [load(nics[member][rail].link.switch) for member in members]
        return tuple(map(sum, zip(*loads, strict=True)))

    return wanted if wanted is not None else min(shared, key=work)
