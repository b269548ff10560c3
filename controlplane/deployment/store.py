"""Jobs that outlive a command and a controller: an SQLite file per topology.

The file is the truth: nothing of it is kept in memory between two transactions, so that commands and a controller can
share it and a restart loses nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from catchment.controlplane.jobs import Allocator, JobError, JobPlan
from catchment.controlplane.jobs.generations import MAX_GENERATION, GenerationOrder
from catchment.controlplane.topology import Topology

SCHEMA_VERSION = 3
_PATIENCE = 10.0
_DAMAGED = (
    "put a copy from before in its place, or save what can be read with `sqlite3 FILE .recover`. Without the file a "
    "controller takes every job off the switches, those that run too"
)
_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
CREATE TABLE jobs (
    name TEXT PRIMARY KEY, plan TEXT NOT NULL, state TEXT NOT NULL, epoch INTEGER NOT NULL, token BLOB NOT NULL
) STRICT;
CREATE TABLE members (
    job TEXT NOT NULL REFERENCES jobs (name) ON DELETE CASCADE, host TEXT NOT NULL,
    state TEXT NOT NULL, epoch INTEGER NOT NULL, session BLOB NOT NULL,
    PRIMARY KEY (job, host)
) STRICT;
"""
_KEPT = "CREATE TABLE kept (switch TEXT PRIMARY KEY, content TEXT NOT NULL) STRICT"
"""Since version 2; since version 3 the settings have `generation_key`."""


def store_folder() -> Path:
    """The folder of job files; CATCHMENT_STATE_DIR overrides."""
    fallback = Path(os.environ.get("XDG_STATE_HOME", Path.home() / ".local" / "state")) / "catchment"
    return Path(os.environ.get("CATCHMENT_STATE_DIR", fallback))


class JobState(StrEnum):
    """How far a job is."""

    CREATING = "creating"
    UP = "up"
    REMOVING = "removing"


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job and what is known beside its plan.

    Attributes:
        plan: the job.
        state: whether its entries are on the switches.
        epoch: 1, and one more each time its generations were replaced.
        token: hash of what its members prove their invitation with; empty when they need none.
    """

    plan: JobPlan
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


class JobStore:
    """One transaction on the jobs of a topology; `open_store` makes one.

    A new file gives generations out in a random order, so that a lost file hardly reuses numbers that a switch may
    still hold tags of, and that no tenant can guess another's from its own.
    """

    def __init__(self, topology: Topology, database: sqlite3.Connection) -> None:
        self.topology = topology
        self._database = database
        self.records = {
            name: JobRecord(JobPlan.from_json(json.loads(plan)), JobState(state), epoch, token)
            for name, plan, state, epoch, token in database.execute(
                "SELECT name, plan, state, epoch, token FROM jobs ORDER BY rowid"
            )
        }
        settings = dict(database.execute("SELECT name, value FROM settings"))
        shares = [share for job in self.jobs.values() for stream in job.streams for share in stream.shares]
        self.allocator = Allocator(
            topology,
            shares,
            next_generation=settings["next_generation"],
            order=GenerationOrder(settings["generation_key"]),
            used_generations=self.generations,
            clean=settings["clean_generations"],
        )
        for job in self.jobs.values():
            for host, port in job.ports.items():
                self.allocator.hold_port(host, port)

    @property
    def jobs(self) -> dict[str, JobPlan]:
        """Every job by its name."""
        return {name: record.plan for name, record in self.records.items()}

    @property
    def deployed(self) -> list[JobPlan]:
        """The jobs that should be on the switches."""
        return [record.plan for record in self.records.values() if record.state is JobState.UP]

    @property
    def generations(self) -> set[int]:
        """The generations of every job."""
        return {stream.gen for job in self.jobs.values() for stream in job.streams}

    def record(self, name: str) -> JobRecord:
        """A job by name.

        Raises:
            JobError: there is none; names those there are.
        """
        try:
            return self.records[name]
        except KeyError:
            have = ", ".join(self.records) or "none; make one with `catchment job create`"
            raise JobError(f"no job {name!r} on topology {self.topology.name}; there are: {have}") from None

    def get(self, name: str) -> JobPlan:
        """The plan of a job; errors as `record`."""
        return self.record(name).plan

    def put(self, record: JobRecord) -> None:
        """Note a job, or what changed about it."""
        name = record.plan.name
        self.records[name] = record
        self._database.execute(
            "INSERT INTO jobs VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET plan = excluded.plan, "
            "state = excluded.state, epoch = excluded.epoch, token = excluded.token",
            (name, json.dumps(record.plan.to_json()), record.state, record.epoch, record.token),
        )

    def set_state(self, name: str, state: JobState) -> None:
        """Note how far a job is."""
        self.put(replace(self.record(name), state=state))

    def discard(self, name: str) -> None:
        """Forget a job and its members."""
        self.records.pop(name, None)
        self._database.execute("DELETE FROM jobs WHERE name = ?", (name,))

    def note_scrubbed(self) -> None:
        """No register of a switch holds a generation that no job has: all numbers may be given out again."""
        self.allocator.clean = MAX_GENERATION

    def members(self, job: str) -> dict[str, MemberRecord]:
        """Host -> the member that joined a job from there."""
        rows = self._database.execute("SELECT host, state, epoch, session FROM members WHERE job = ?", (job,))
        return {row[0]: MemberRecord(*row) for row in rows}

    def put_member(self, job: str, member: MemberRecord) -> None:
        """Note a member, or what changed about it."""
        self._database.execute(
            "INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?, ?)",
            (job, member.host, member.state, member.epoch, member.session),
        )

    def kept(self, switch: str) -> str | None:
        """What is kept of a switch beside the jobs; None when nothing has been kept of it yet."""
        row = self._database.execute("SELECT content FROM kept WHERE switch = ?", (switch,)).fetchone()
        return None if row is None else str(row[0])

    def keep(self, switch: str, content: str) -> None:
        """Keep `content` of a switch."""
        self._database.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (switch, content))

    def flush(self) -> None:
        """Put the allocator's numbers into the transaction."""
        numbers = {"next_generation": self.allocator.next_generation, "clean_generations": self.allocator.clean}
        self._database.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", numbers.items())


Transactions = Callable[[], contextlib.AbstractContextManager[JobStore]]
"""What opens a transaction on a store that is settled already."""


@contextlib.contextmanager
def open_store(topology: Topology, folder: Path | None = None) -> Iterator[JobStore]:
    """A transaction on the jobs of a topology: kept at the end of the block, undone when it fails.

    Others wait meanwhile: do not talk to a switch inside.

    Args:
        topology: whose jobs.
        folder: where the file lives; the user's state folder by default.

    Raises:
        JobError: the file cannot be read or written, or comes from another version.
    """
    folder = store_folder() if folder is None else folder
    path = folder / f"{topology.name}.jobs.sqlite"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    except (OSError, sqlite3.OperationalError) as error:
        raise JobError(
            f"cannot open the jobs of {topology.name} in {folder} ({error}); is it yours? use sudo"
        ) from None
    with contextlib.closing(database):
        try:
            path.chmod(0o600)
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("BEGIN IMMEDIATE")
            _migrate(database, path)
            store = JobStore(topology, database)
        except (OSError, sqlite3.DatabaseError) as error:
            raise JobError(f"cannot read the job file {path}: {error}; {_DAMAGED}") from None
        try:
            yield store
        except BaseException:
            database.execute("ROLLBACK")
            raise
        try:
            store.flush()
            database.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise JobError(f"cannot write the job file {path}: {error}; is its disk full?") from None


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    """Bring an older file up to date; a new one gets its tables."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version == SCHEMA_VERSION:
        return
    if version not in (0, 1, 2):
        raise JobError(
            f"{path} has schema {version}, this program knows {SCHEMA_VERSION}: use the catchment that wrote it"
        )
    if version < 2:
        database.execute(_KEPT)
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    key = GenerationOrder().key
    if version:
        # The order of the generations is another one from here on: those of old may come again, and must be scrubbed.
        settings = {"generation_key": key, "clean_generations": 0}
        database.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items())
        return
    for statement in _SCHEMA.strip().split(";\n"):
        if statement:
            database.execute(statement.removesuffix(";"))
    database.executemany(
        "INSERT INTO settings VALUES (?, ?)",
        {"next_generation": 1, "clean_generations": MAX_GENERATION, "generation_key": key}.items(),
    )
