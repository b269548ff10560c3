"""What is noted of jobs beside their plans, as values: what a controller remembers and a job file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catchment.controlplane.jobs import JobGroup


class JobState(StrEnum):
    """How far a job is."""

    CREATING = "creating"
    UP = "up"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job, or a group of jobs that go together, and what is known beside its plans.

    Attributes:
        group: the job or jobs.
        state: whether its entries are on the switches.
        epoch: 1, and one more each time its generations were replaced.
        token: hash of what its members prove their invitation with; empty when nobody may join with any.
    """

    group: JobGroup
    state: JobState = JobState.UP
    epoch: int = 1
    token: bytes = b""


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member that has joined a job.

    Attributes:
        host: on which host.
        state: joined, left or lost.
        epoch: the last one that it was told the generations of.
        session: hash of the secret that names it.
    """

    host: str
    state: str
    epoch: int
    session: bytes


@dataclass(frozen=True, slots=True)
class Holding:
    """A part of a switch that a job of another control plane holds: one port of one of its streams.

    Attributes:
        gen: generation of the stream.
        port: port of the switch.
        udp: UDP port of the member on it.
        base: first slot.
        slots: how many.
        row: of the registers.
        group: multicast group.
    """

    gen: int
    port: int
    udp: int
    base: int
    slots: int
    row: int
    group: int


@dataclass(frozen=True, slots=True)
class Contents:
    """All that is noted of a topology's jobs, at one moment.

    Attributes:
        records: every job by its name.
        members: (job, host) -> the member that joined from there.
        kept: switch -> what people put on it, as text.
        foreign: switch -> what other control planes hold there; a switch that nobody has compared yet is left out.
        settings: numbers of the allocator.
    """

    records: Mapping[str, JobRecord] = field(default_factory=dict)
    members: Mapping[tuple[str, str], MemberRecord] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    foreign: Mapping[str, tuple[Holding, ...]] = field(default_factory=dict)
    settings: Mapping[str, int] = field(default_factory=dict)
