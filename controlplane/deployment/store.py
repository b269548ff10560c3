"""Jobs that outlive a command: what is noted of them, changed as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from catchment.controlplane.deployment import database
from catchment.controlplane.deployment.records import Contents, Holding, JobRecord, JobState, MemberRecord
from catchment.controlplane.jobs import Allocator, JobGroup, JobPlan, Share
from catchment.controlplane.jobs.errors import job_of_name
from catchment.controlplane.jobs.generations import MAX_GENERATION, GenerationOrder
from catchment.controlplane.topology import Host, Topology


def store_folder() -> Path:
    """The folder of job files; CATCHMENT_STATE_DIR overrides, unless it is empty."""
    fallback = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "catchment"
    return Path(os.environ.get("CATCHMENT_STATE_DIR") or fallback)


def _generations(record: JobRecord | None) -> set[int]:
    return set() if record is None else {stream.gen for plan in record.group.plans for stream in plan.streams}


class JobStore:
    """The jobs of a topology, to look at or, in a transaction, to change.

    A new file gives generations out in a random order, so that a lost file hardly reuses numbers that a switch may
    still hold tags of, and that no tenant can guess another's from its own.

    Attributes:
        topology: whose jobs.
        records: every job by its name.
        allocator: knows what they hold, and what other control planes do.
        can_wait: what changed may reach the file later. A controller, which remembers it, then goes on when its disk
            is full; a command's transaction always writes.
    """

    def __init__(self, topology: Topology, contents: Contents) -> None:
        self.topology = topology
        self.can_wait = False
        self.records = dict(contents.records)
        self._members = dict(contents.members)
        self._kept = dict(contents.kept)
        self._foreign = dict(contents.foreign)
        self._settings = dict(contents.settings)
        self.allocator = self._make_allocator()

    def _make_allocator(self) -> Allocator:
        shares = [share for job in self.jobs.values() for stream in job.streams for share in stream.shares]
        here = self.topology.switches  # what is held of a switch that the topology has lost is in nobody's way
        foreign = [(switch, one) for switch, held in self._foreign.items() if switch in here for one in held]
        shares = [share for share in shares if share.switch in here]
        shares += [Share(switch, one.base, one.slots, one.row, one.group) for switch, one in foreign]
        allocator = Allocator(
            self.topology,
            shares,
            next_generation=self._settings["next_generation"],
            order=GenerationOrder(self._settings["generation_key"]),
            used_generations=self.generations | {one.gen for _, one in foreign},
            clean=self._settings["clean_generations"],
        )
        for job in self.jobs.values():
            for host, port in job.ports.items():
                allocator.hold_port(host, port)
        for switch, one in foreign:
            if isinstance(peer := self.topology.ports(switch).get(one.port), Host):
                allocator.hold_port(peer.name, one.udp)
        return allocator

    def contents(self) -> Contents:
        """All of it as a value."""
        numbers = {"next_generation": self.allocator.next_generation, "clean_generations": self.allocator.clean}
        settings = {**self._settings, **numbers}
        return Contents(dict(self.records), dict(self._members), dict(self._kept), dict(self._foreign), settings)

    @property
    def jobs(self) -> dict[str, JobPlan]:
        """Every job by its name, each of a group by itself."""
        return {plan.name: plan for record in self.records.values() for plan in record.group.plans}

    @property
    def deployed(self) -> list[JobPlan]:
        """The jobs that should be on the switches: none that the topology has no place for any more."""
        misfits = self.misfits
        return [
            plan
            for name, record in self.records.items()
            if record.state is JobState.UP and name not in misfits
            for plan in record.group.plans
        ]

    @property
    def misfits(self) -> dict[str, str]:
        """Job -> why it cannot be on its switches since the topology has changed; those that can are left out."""
        why = {name: record.group.misfit(self.topology) for name, record in self.records.items()}
        return {name: misfit for name, misfit in why.items() if misfit}

    @property
    def generations(self) -> set[int]:
        """The generations of every job."""
        return {generation for record in self.records.values() for generation in _generations(record)}

    @property
    def owner(self) -> str:
        """The words that entries of these jobs are marked with on switches."""
        return f"catchment {self._settings['owner']:016x}"

    def record(self, name: str) -> JobRecord:
        """A job by name.

        Raises:
            JobError: there is none; names those there are.
        """
        return job_of_name(self.records, name, self.topology.name)

    def get(self, name: str) -> JobGroup:
        """A job or group of jobs by name; errors as `record`."""
        return self.record(name).group

    def put(self, record: JobRecord) -> None:
        """Note a job, or what changed about it."""
        before = self.records.get(record.group.name)
        self.records[record.group.name] = record
        for generation in _generations(before) - _generations(record):
            self.allocator.release_generation(generation)

    def set_state(self, name: str, state: JobState) -> None:
        """Note how far a job is."""
        self.put(replace(self.record(name), state=state))

    def discard(self, name: str) -> None:
        """Forget a job and its members."""
        for generation in _generations(self.records.pop(name, None)):
            self.allocator.release_generation(generation)
        self._members = {place: member for place, member in self._members.items() if place[0] != name}

    def note_scrubbed(self) -> None:
        """No register of a switch holds a generation that no job has: all numbers may be given out again."""
        self.allocator.clean = MAX_GENERATION

    def members(self, job: str) -> dict[str, MemberRecord]:
        """Host -> the member that joined a job from there."""
        return {host: member for (name, host), member in self._members.items() if name == job}

    def put_member(self, job: str, member: MemberRecord) -> None:
        """Note a member, or what changed about it."""
        self._members[job, member.host] = member

    def kept(self, switch: str) -> str | None:
        """What is kept of a switch beside the jobs; None when nothing has been kept of it yet."""
        return self._kept.get(switch)

    def keep(self, switch: str, content: str) -> None:
        """Keep `content` of a switch."""
        self._kept[switch] = content

    def foreign(self, switch: str) -> tuple[Holding, ...] | None:
        """What other control planes hold on a switch; None for a switch that was never compared with these jobs."""
        return self._foreign.get(switch)

    def note_foreign(self, switch: str, holdings: Iterable[Holding]) -> None:
        """Note what other control planes hold on a switch."""
        self._foreign[switch] = tuple(holdings)


Transactions = Callable[[], contextlib.AbstractContextManager[JobStore]]
"""What opens a transaction on a store that is settled already."""


@contextlib.contextmanager
def open_store(topology: Topology, folder: Path | None = None) -> Iterator[JobStore]:
    """A transaction on the jobs of a topology: kept at the end of the block, undone when it fails.

    Other writers wait meanwhile: do not talk to a switch inside.

    Args:
        topology: whose jobs.
        folder: where the file lives; the user's state folder by default.

    Raises:
        JobError: the file cannot be read or written, or comes from another version.
    """
    with database.writing(_file(topology, folder)) as transaction:
        store = JobStore(topology, transaction.before)
        yield store
        transaction.save(store.contents())


def read_store(topology: Topology, folder: Path | None = None) -> JobStore:
    """The jobs of a topology, to look at: no writer waits for that, and nothing is written.

    Raises:
        JobError: the file cannot be read, or comes from another version.
    """
    return JobStore(topology, database.read(_file(topology, folder)))


def _file(topology: Topology, folder: Path | None) -> Path:
    return database.job_file(topology.name, store_folder() if folder is None else folder)
