"""Finds which members a job that does not move waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.jobs import JobPlan, StreamPlan
from catchment.controlplane.jobs.kind import kind_of
from catchment.controlplane.jobs.tree import Branch
from catchment.controlplane.state.desired import JOBS
from catchment.wire.generated.constants import Mode

_SEQUENCE = 0xFFFF_FFFF
_HALF = 1 << 31
_STEPS = {"vector": ("slot_tag", "slot_workers"), "acknowledgement": ("ack_tag", "ack_workers")}
"""What workers send of each sequence number -> the registers with a slot's number and the workers that have sent it."""


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


Sample = Mapping[tuple[int, int], int]
"""(generation, port) -> packets that arrived there."""


def sample(client: SwitchClient) -> Sample:
    """What a switch has counted of its jobs' packets.

    Raises:
        SwitchError: it does not answer.
    """
    counters = client.direct_counters(JOBS)
    return {(int(e.match["gen"]), int(e.match["port"])): e.packets or 0 for e in counters}


def silent_members(job: JobPlan, branch: Branch, earlier: Sample, later: Sample) -> list[Missing]:
    """The members on one switch whose packets were as many at both looks."""
    members = list(branch.members)
    if branch.up_port is not None:
        members.append((branch.up_port, branch.parent.switch if branch.parent else str(job.root)))
    before, after = _by_port(job, earlier), _by_port(job, later)
    return [
        Missing(member, branch.switch, port, after.get(port, 0))
        for port, member in members
        if after.get(port, 0) == before.get(port, 0)
    ]


def _by_port(job: JobPlan, counts: Sample) -> dict[int, int]:
    found: dict[int, int] = {}
    for (generation, port), packets in counts.items():
        if any(generation == stream.gen for stream in job.streams):
            found[port] = found.get(port, 0) + packets
    return found


def diagnose(
    job: JobPlan,
    clients: Mapping[str, SwitchClient],
    *,
    interval: float = 0.5,
    pause: Callable[[float], object] | None = None,
) -> list[Missing]:
    """The members that send nothing while they are watched.

    Every member of a job that is not finished sends: data, retransmissions or heartbeats. So who
    sends nothing for `interval` seconds (many retransmission timeouts) is dead, stuck or cut off.

    Args:
        job: a deployed job.
        clients: switch name -> client; switches without one are left out.
        interval: seconds between the two looks at the counters.
        pause: waits so many seconds; sleeps when left out.
    """
    watched = [branch for branch in job.tree if branch.switch in clients]
    before = {branch.switch: _sample_if_up(clients[branch.switch]) for branch in watched}
    (pause or time.sleep)(interval)
    missing: list[Missing] = []
    for branch in watched:
        earlier, later = before[branch.switch], _sample_if_up(clients[branch.switch])
        if earlier is None or later is None:
            missing.append(Missing(branch.switch, branch.switch, 0, None))
        else:
            missing += silent_members(job, branch, earlier, later)
    return missing


def _sample_if_up(client: SwitchClient) -> Sample | None:
    try:
        return sample(client)
    except SwitchError:
        return None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A vector, or an acknowledgement, that some members of a switch have sent and others have not.

    Attributes:
        switch: where it waits.
        stream: which stream of the job.
        seq: its sequence number, the first that waits.
        members: who has not sent it: host names, or names of child switches.
        slot: of the switch program.
        step: vector, or in slots jobs acknowledgement.
        registers: those that show it: number and generation, and who has sent.
    """

    switch: str
    stream: str
    seq: int
    members: tuple[str, ...]
    slot: int
    step: str
    registers: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.stream}: {self.step} {self.seq} waits for {', '.join(self.members)} at switch {self.switch}"


def waiting_for(job: JobPlan, clients: Mapping[str, SwitchClient]) -> list[Waiting]:
    """The first incomplete vector of each adding stream on each switch, from the switch's registers.

    In a slots job whose vectors are all complete, the first acknowledgement that somebody has not sent.
    Empty when nothing waits, and on targets without register access (BMv2). It also finds a member
    whose endpoint lives while its program stands still.

    Args:
        job: a deployed job.
        clients: switch name -> client; switches without one are left out.

    Raises:
        SwitchError: a switch does not answer.
    """
    found = []
    for branch in job.tree:
        if branch.switch not in clients:
            continue
        for stream in job.streams:
            if stream.mode is Mode.BCAST:
                continue
            try:
                waiting = _first_waiting(job, branch, stream, clients[branch.switch])
            except SwitchError as error:
                if error.code == "UNIMPLEMENTED":
                    break
                raise
            if waiting is not None:
                found.append(waiting)
    return found


def newest_vectors(job: JobPlan, switch: str, client: SwitchClient) -> dict[str, int]:
    """Stream -> the latest vector that a switch has of it; nothing on targets without register access (BMv2).

    Raises:
        SwitchError: it does not answer.
    """
    found = {}
    for stream in job.streams:
        share = stream.share(switch)
        try:
            tags = client.register_cells("slot_tag.tag", range(share.base, share.base + share.slots))
        except SwitchError as error:
            if error.code == "UNIMPLEMENTED":
                return {}
            raise
        held = [tag & _SEQUENCE for tag in tags.values() if tag >> 32 == stream.gen]
        if held and stream.mode is not Mode.BCAST:
            found[stream.name] = max(held, key=lambda n: (n - held[0] + _HALF) & _SEQUENCE)
    return found


def _first_waiting(job: JobPlan, branch: Branch, stream: StreamPlan, client: SwitchClient) -> Waiting | None:
    share = stream.share(branch.switch)
    slots = range(share.base, share.base + share.slots)
    full = (1 << len(branch.members)) - 1
    for step, registers in _STEPS.items():
        if step != "vector" and not kind_of(job.kind).two_steps:
            continue
        tags = client.register_cells(f"{registers[0]}.tag", slots)
        bitmaps = client.register_cells(f"{registers[1]}.bitmap", slots)
        incomplete = {
            tags[slot] & _SEQUENCE: slot
            for slot in slots
            if tags.get(slot, 0) >> 32 == stream.gen and bitmaps.get(slot, 0) != full
        }
        if incomplete:
            seq = _first(incomplete)
            slot = incomplete[seq]
            absent = (name for wid, (_, name) in enumerate(branch.members) if not bitmaps.get(slot, 0) >> wid & 1)
            return Waiting(branch.switch, stream.name, seq, tuple(absent), slot, step, registers)
    return None


def _first(sequence_numbers: Iterable[int]) -> int:
    """The earliest on the 32-bit circle; they lie within half of it."""
    numbers = list(sequence_numbers)
    return min(numbers, key=lambda n: (n - numbers[0] + _HALF) & _SEQUENCE)
