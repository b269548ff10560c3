"""The job file: an SQLite database per topology. Reading takes no lock that a writer waits for, and needs no disk."""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from catchment.controlplane.deployment.records import Contents, Holding, JobRecord, JobState, MemberRecord
from catchment.controlplane.jobs import JobError, JobGroup
from catchment.controlplane.jobs.generations import KEY_BITS, MAX_GENERATION, GenerationOrder

SCHEMA_VERSION = 6
_LOCK_TIMEOUT = 10.0
_LOCK_RETRY = 0.002
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_DAMAGED = (
    "put a copy from before in its place, or save what can be read with `sqlite3 FILE .recover`. You may also move it "
    "away: a controller with a new file leaves the jobs on the switches alone, which go on, but neither renews nor "
    "restores them"
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
"""Held by databases since version 2; since version 3 the settings have `generation_key`."""
_FOREIGN = "CREATE TABLE foreign_jobs (switch TEXT PRIMARY KEY, holdings TEXT NOT NULL) STRICT"
"""Held by databases since version 4, as the setting `owner`; since version 5 a plan is that of a group, since version
6 its splits say among which workers."""


class DamagedError(JobError):
    """The job file is not one any more."""


def job_file(topology: str, folder: Path) -> Path:
    """The path of a topology's job file."""
    return folder / f"{topology}.jobs.sqlite"


def new_settings() -> dict[str, int]:
    """The numbers of a new job file: its order of generations, and what its jobs are marked with on switches."""
    return {
        "next_generation": 1,
        "clean_generations": MAX_GENERATION,
        "generation_key": GenerationOrder().key,
        "owner": secrets.randbits(KEY_BITS),
    }


def read(path: Path) -> Contents:
    """All that a file holds; nothing is written, and a file that is not there has nothing in it.

    Raises:
        JobError: the file cannot be read, or comes from another version.
    """
    try:
        if not path.exists():
            return Contents(settings=new_settings())
        try:
            return _read(path, "ro")
        except sqlite3.OperationalError:  # nobody has it open, and there is no room for the memory that readers share
            return _read(path, "rw", "PRAGMA locking_mode = EXCLUSIVE")
    except (OSError, sqlite3.DatabaseError) as error:
        raise _unusable(path, error) from None


def _read(path: Path, mode: str, *before: str) -> Contents:
    address = f"file:{quote(str(path))}?mode={mode}"
    with contextlib.closing(
        sqlite3.connect(address, timeout=_LOCK_TIMEOUT, isolation_level=None, uri=True)
    ) as database:
        for statement in before:
            database.execute(statement)
        database.execute("BEGIN")
        if _version(database, path) == SCHEMA_VERSION:
            return _load(database)
    with writing(path) as transaction:  # of an older version: it is brought up to date first
        return transaction.before


class Transaction:
    """A transaction that writes.

    Attributes:
        before: what the file held.
    """

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self.before = _load(database)

    def save(self, after: Contents) -> None:
        """Make the file hold this."""
        _save(self._database, self.before, after)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Transaction]:
    """A transaction on a file, which is made if need be: kept at the end of the block, undone when it fails.

    Raises:
        JobError: the file cannot be read or written, or comes from another version; DamagedError where it is broken.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        database = sqlite3.connect(path, timeout=_LOCK_TIMEOUT, isolation_level=None)
    except (OSError, sqlite3.OperationalError) as error:
        raise JobError(f"cannot open the job file {path} ({error}); is it yours? use sudo") from None
    with contextlib.closing(database):
        try:
            path.chmod(0o600)
            _keep_a_log(database)
            database.execute("PRAGMA foreign_keys = ON")
            database.execute("BEGIN IMMEDIATE")
            _migrate(database, path)
            transaction = Transaction(database)
        except (OSError, sqlite3.DatabaseError) as error:
            raise _unusable(path, error) from None
        try:
            yield transaction
            database.execute("COMMIT")
        except BaseException as error:
            with contextlib.suppress(sqlite3.DatabaseError):  # which an error may have ended
                database.execute("ROLLBACK")
            if isinstance(error, sqlite3.DatabaseError):
                raise _unusable(path, error) from None
            raise


def _keep_a_log(database: sqlite3.Connection) -> None:
    """Have a file's changes written ahead to a log. SQLite does not itself wait for others that change to it, too."""
    until = time.monotonic() + _LOCK_TIMEOUT
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_LOCK_RETRY)


def put_aside(path: Path) -> Path:
    """Rename a broken file, so that a new one can take its place; returns where it is now."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside


def _unusable(path: Path, error: OSError | sqlite3.DatabaseError) -> JobError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGE:
        return DamagedError(f"the job file {path} is damaged ({error}); {_DAMAGED}")
    advice = "its disk is full: make room" if code == sqlite3.SQLITE_FULL else "is its disk full, or is it not yours?"
    return JobError(f"cannot use the job file {path}: {error}; {advice}")


def _load(database: sqlite3.Connection) -> Contents:
    rows = database.execute("SELECT name, plan, state, epoch, token FROM jobs ORDER BY rowid")
    members = database.execute("SELECT job, host, state, epoch, session FROM members")
    return Contents(
        {
            name: JobRecord(JobGroup.from_json(json.loads(plan)), JobState(state), epoch, token)
            for name, plan, state, epoch, token in rows
        },
        {(job, host): MemberRecord(host, *rest) for job, host, *rest in members},
        dict(database.execute("SELECT switch, content FROM kept")),
        {
            switch: tuple(Holding(**one) for one in json.loads(holdings))
            for switch, holdings in database.execute("SELECT switch, holdings FROM foreign_jobs")
        },
        dict(database.execute("SELECT name, value FROM settings")),
    )


def _save(database: sqlite3.Connection, old: Contents, new: Contents) -> None:
    database.executemany(
        "DELETE FROM jobs WHERE name = ?", [(name,) for name in old.records if name not in new.records]
    )
    _upsert(database, "jobs", old.records, new.records, _job_row)
    _upsert(database, "members", old.members, new.members, _member_row)
    _upsert(database, "kept", old.kept, new.kept, lambda switch, content: (switch, content))
    _upsert(database, "foreign_jobs", old.foreign, new.foreign, _foreign_row)
    _upsert(database, "settings", old.settings, new.settings, lambda name, value: (name, value))


def _upsert(
    database: sqlite3.Connection,
    table: str,
    old: Mapping[Any, Any],
    new: Mapping[Any, Any],
    row: Callable[[Any, Any], tuple[Any, ...]],
) -> None:
    changed = [row(key, value) for key, value in new.items() if key not in old or old[key] != value]
    names = [name for _, name, *_ in database.execute(f"PRAGMA table_info({table})")]
    updates = ", ".join(f"{name} = excluded.{name}" for name in names)  # a replaced row would lose its place
    marks = ", ".join("?" * len(names))
    database.executemany(f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO UPDATE SET {updates}", changed)


def _job_row(name: str, record: JobRecord) -> tuple[Any, ...]:
    return name, json.dumps(record.group.to_json()), record.state, record.epoch, record.token


def _member_row(place: tuple[str, str], member: MemberRecord) -> tuple[Any, ...]:
    return *place, member.state, member.epoch, member.session


def _foreign_row(switch: str, holdings: tuple[Holding, ...]) -> tuple[Any, ...]:
    return switch, json.dumps([asdict(one) for one in holdings])


def _version(database: sqlite3.Connection, path: Path) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if not 0 <= version <= SCHEMA_VERSION:
        raise JobError(
            f"{path} has schema {version}, this program knows {SCHEMA_VERSION}: use the catchment that wrote it"
        )
    return int(version)


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    """Bring an older file up to date; a new one gets its tables."""
    version = _version(database, path)
    if version == SCHEMA_VERSION:
        return
    settings = new_settings()
    if version < 2:
        database.execute(_KEPT)
    if version < 4:
        database.execute(_FOREIGN)
    if 0 < version < 5:
        _make_groups(database)
    if version == 5:
        _say_who_splits(database)
    if version == 0:
        for statement in _SCHEMA.strip().split(";\n"):
            if statement:
                database.execute(statement.removesuffix(";"))
    elif version < 3:
        # The order of the generations is another one from here on: those of old may come again, and must be scrubbed.
        settings = {**settings, "clean_generations": 0}
        del settings["next_generation"]
    else:
        settings = {"owner": settings["owner"]} if version < 4 else {}
    database.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", settings.items())
    database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _say_who_splits(database: sqlite3.Connection) -> None:
    """Write every split as one among all workers."""
    for name, plan in database.execute("SELECT name, plan FROM jobs").fetchall():
        group = json.loads(plan)
        group["splits"] = {label: {"number": number, "among": []} for label, number in group["splits"].items()}
        database.execute("UPDATE jobs SET plan = ? WHERE name = ?", (json.dumps(group), name))


def _make_groups(database: sqlite3.Connection) -> None:
    """Write every job as a group of one, its streams with slots of their own."""
    for name, plan in database.execute("SELECT name, plan FROM jobs").fetchall():
        job = json.loads(plan)
        for stream in job["streams"]:
            stream["slots"] = job["slots"]
        group = {"name": name, "parts": {"": job}, "splits": {}}
        database.execute("UPDATE jobs SET plan = ? WHERE name = ?", (json.dumps(group), name))
