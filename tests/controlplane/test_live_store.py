"""The jobs in a controller's memory: what they do when the job file cannot be written, or is broken."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_job_store import TOPOLOGY, request

from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.live_store import LiveStore
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import open_store, read_store
from catchment.controlplane.jobs import JobError, JobGroup

FILE = "lab.jobs.sqlite"


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No job file can grow or change: SQLite says what it says on a full disk."""
    real = sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            if sql == "COMMIT":
                super().execute("ROLLBACK")
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            return super().execute(sql, *parameters)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", partial(real, factory=Connection))
        yield


def up(store: LiveStore, name: str) -> JobRecord:
    record = lifecycle.reserve_job(store, request(name), TOPOLOGY)
    with store() as jobs:
        jobs.set_state(name, JobState.UP)
    return replace(record, state=JobState.UP)


def test_a_reader_waits_for_no_writer(tmp_path: Path) -> None:
    with open_store(TOPOLOGY, tmp_path) as jobs:
        jobs.put(JobRecord(request("a").plan(TOPOLOGY, jobs.allocator)))
    with open_store(TOPOLOGY, tmp_path) as jobs:
        jobs.discard("a")
        assert list(read_store(TOPOLOGY, tmp_path).jobs) == ["a"], "what is not decided yet is not seen"
    assert list(read_store(TOPOLOGY, tmp_path).jobs) == []


def test_looking_makes_no_file(tmp_path: Path) -> None:
    assert read_store(TOPOLOGY, tmp_path).jobs == {}
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_stops_nothing_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = LiveStore(TOPOLOGY, tmp_path)
    up(store, "train")
    with full_disk(monkeypatch):
        for epoch in (2, 3):
            record, _ = lifecycle.renew_job(store, "train", TOPOLOGY, {})
            assert record.epoch == epoch
        assert store.look().get("train") == record.group
        store.save()
        assert "is full" in store.trouble
        assert read_store(TOPOLOGY, tmp_path).record("train").epoch == 1
    store.save()
    assert store.trouble == ""
    assert read_store(TOPOLOGY, tmp_path).record("train") == store.look().record("train")
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2 and "make room" in said[0] and "up to date again" in said[1]


def test_a_job_that_cannot_be_noted_does_not_come_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LiveStore(TOPOLOGY, tmp_path)
    with full_disk(monkeypatch), pytest.raises(JobError, match="disk is full"):
        lifecycle.reserve_job(store, request("train"), TOPOLOGY)
    assert store.look().jobs == {}
    record = lifecycle.reserve_job(store, request("train"), TOPOLOGY)
    nowhere = JobGroup.alone(replace(record.group.first, tree=()))
    with full_disk(monkeypatch), pytest.raises(JobError, match="disk is full"):
        lifecycle.deploy_job(store, replace(record, group=nowhere), TOPOLOGY, {})
    assert store.look().jobs == {}, "it would be gone after a restart, so it must be gone now"


def test_a_job_that_cannot_be_removed_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LiveStore(TOPOLOGY, tmp_path)
    record = up(store, "train")
    with full_disk(monkeypatch), pytest.raises(JobError, match="disk is full"):
        lifecycle.remove_job_where_possible(store, "train", {})
    assert store.look().record("train") == record
    lifecycle.remove_job_where_possible(store, "train", {})
    assert store.look().jobs == {}


def test_no_generation_comes_again_that_the_file_does_not_know_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LiveStore(TOPOLOGY, tmp_path)
    up(store, "train")
    used: set[int] = set()
    with full_disk(monkeypatch):
        while True:
            try:
                record, _ = lifecycle.renew_job(store, "train", TOPOLOGY, {})
            except JobError:
                break
            fresh = {stream.gen for stream in record.group.first.streams}
            assert not used & fresh
            used |= fresh
    assert len(used) == 64, "so many may be given out without a note"
    again = LiveStore(TOPOLOGY, tmp_path)  # as after a crash
    assert used <= again.passed_over
    record, _ = lifecycle.renew_job(again, "train", TOPOLOGY, {})
    assert not used & {stream.gen for stream in record.group.first.streams}


def test_a_broken_file_is_said_once_and_replaced_from_memory(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = LiveStore(TOPOLOGY, tmp_path)
    up(store, "train")
    path = tmp_path / FILE
    broken = b"no page of a database" * 400
    path.write_bytes(broken)
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    assert list(store.look().jobs) == ["train"], "a switch that restarts gets its entries"
    record, _ = lifecycle.renew_job(store, "train", TOPOLOGY, {})
    lifecycle.renew_job(store, "train", TOPOLOGY, {})
    assert (tmp_path / f"{FILE}.damaged-1").read_bytes() == broken
    assert read_store(TOPOLOGY, tmp_path).record("train").epoch == record.epoch + 1
    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 1 and "is damaged" in said[0] and "nothing is lost" in said[0]
    assert path.stat().st_mode & 0o777 == 0o600


def fill(path: Path) -> None:
    """Take all the room that a disk has."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 512)
        except OSError:
            pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_disk_without_a_free_block(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(disk)], check=True)
    try:
        store = LiveStore(TOPOLOGY, disk)
        up(store, "train")
        fill(disk / "filler")
        assert list(read_store(TOPOLOGY, disk).jobs) == ["train"]
        with pytest.raises(JobError, match=r"disk"):
            lifecycle.reserve_job(store, request("more"), TOPOLOGY)
        assert "train" in store.look().jobs
        lifecycle.renew_job(store, "train", TOPOLOGY, {})
        assert list(LiveStore(TOPOLOGY, disk).look().jobs) == ["train"], "a controller starts on a full disk"
        (disk / "filler").unlink()
        store.save()
        assert read_store(TOPOLOGY, disk).record("train").epoch == 2
    finally:
        subprocess.run(["umount", str(disk)], check=True)
