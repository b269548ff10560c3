"""Who is missing: the question of a job that does not move."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from controlplane.client import SwitchClient, SwitchError
from controlplane.jobs import JobPlan
from controlplane.jobs.entries import JOBS


@dataclass(frozen=True, slots=True)
class Missing:
    """A member from which a switch hears nothing.

    Attributes:
        member: host name, or the name of a child switch.
        switch: the switch that hears nothing.
        port: the port it is on.
        packets: how many it sent since the job was deployed; None when the switch itself is silent.
    """

    member: str
    switch: str
    port: int
    packets: int | None

    def __str__(self) -> str:
        if self.packets is None:
            return f"switch {self.switch} does not answer"
        since = "has never sent anything" if self.packets == 0 else f"is silent after {self.packets} packets"
        return f"{self.member} (port {self.port} of switch {self.switch}) {since}"


def sample(job: JobPlan, switch: str, client: SwitchClient) -> dict[int, int]:
    """Port -> packets of the job that arrived there, over its streams."""
    generations = {stream.gen for stream in job.streams}
    counts: dict[int, int] = {}
    for entry in client.direct_counters(JOBS):
        if entry.match["gen"] in generations:
            port = int(entry.match["port"])
            counts[port] = counts.get(port, 0) + (entry.packets or 0)
    return counts


def diagnose(job: JobPlan, clients: Mapping[str, SwitchClient], *, interval: float = 0.5) -> list[Missing]:
    """The members that send nothing while they are watched.

    Every member of a job that is not finished sends: data, retransmissions or heartbeats. So who
    sends nothing for `interval` seconds (many retransmission timeouts) is dead, stuck or cut off.

    Args:
        job: a deployed job.
        clients: switch name -> client; switches without one are left out.
        interval: seconds between the two looks at the counters.
    """
    missing: list[Missing] = []
    before: dict[str, dict[int, int]] = {}
    for branch in job.tree:
        if branch.switch not in clients:
            continue
        try:
            before[branch.switch] = sample(job, branch.switch, clients[branch.switch])
        except SwitchError:
            missing.append(Missing(branch.switch, branch.switch, 0, None))
    time.sleep(interval)
    for branch in job.tree:
        if branch.switch not in before:
            continue
        after = sample(job, branch.switch, clients[branch.switch])
        members = list(branch.members)
        if branch.up_port is not None:
            members.append((branch.up_port, branch.parent.switch if branch.parent else str(job.root)))
        for port, member in members:
            if after.get(port, 0) == before[branch.switch].get(port, 0):
                missing.append(Missing(member, branch.switch, port, after.get(port, 0)))
    return missing
