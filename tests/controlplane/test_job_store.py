"""What is stored survives a crash at any moment, and nothing half done does; old generations are scrubbed."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from fake_switch import RunningFake

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.records import JobRecord, JobState
from catchment.controlplane.deployment.store import open_store, store_folder
from catchment.controlplane.jobs import JobError, JobRequest, TakenError
from catchment.controlplane.topology import star
from catchment.wire.generated import controller_pb2 as pb

TOPOLOGY = star(["w0", "w1", "opt"], program=Path("luwu.p4"), name="lab")


def request(name: str) -> JobRequest:
    return JobRequest(name, "luwu", ("w0", "w1"), "opt", 8)


def test_an_empty_variable_names_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("CATCHMENT_STATE_DIR", "")
    assert store_folder() == Path("/home/somebody/.local/state/catchment")


def test_the_last_epoch_is_the_last_that_a_message_can_name(tmp_path: Path) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    lifecycle.reserve_job(store, request("a"), TOPOLOGY)
    record, _ = lifecycle.renew_job(store, "a", TOPOLOGY, {}, above=2**32 - 2)
    assert pb.Job(epoch=record.epoch).epoch == 2**32 - 1
    with pytest.raises(JobError, match="job a has no epoch left after 4294967295: remove it and create it again"):
        lifecycle.renew_job(store, "a", TOPOLOGY, {})
    with store() as jobs:
        assert jobs.record("a") == record


def test_a_block_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    lifecycle.reserve_job(store, request("a"), TOPOLOGY)
    with store() as jobs:
        before = jobs.allocator.next_generation

    def fail() -> None:
        with store() as jobs:
            jobs.discard("a")
            jobs.allocator.generation()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with store() as jobs:
        assert list(jobs.jobs) == ["a"]
        assert jobs.allocator.next_generation == before
        assert jobs.record("a").state is JobState.CREATING
    assert (tmp_path / "lab.jobs.sqlite").stat().st_mode & 0o777 == 0o600


def test_a_killed_writer_leaves_no_trace(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from test_job_store import TOPOLOGY, request
from catchment.controlplane.deployment.database import job_file, writing
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.deployment.store import JobStore
with writing(job_file(TOPOLOGY.name, Path(sys.argv[1]))) as transaction:
    jobs = JobStore(TOPOLOGY, transaction.before)
    jobs.put(JobRecord(request("half").plan(TOPOLOGY, jobs.allocator)))
    transaction.save(jobs.contents())
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], env=environment, check=False)
    assert run.returncode == -9
    with open_store(TOPOLOGY, tmp_path) as jobs:
        assert jobs.jobs == {}


def test_two_writers_take_turns(tmp_path: Path) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(4):
                lifecycle.reserve_job(store, request(f"j{number}-{turn}"), TOPOLOGY)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with store() as jobs:
        assert len(jobs.jobs) == 16
        assert len(jobs.generations) == 32


def test_who_makes_the_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lab.jobs.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as first:
        first.execute("BEGIN IMMEDIATE")
        release = threading.Timer(0.3, lambda: first.execute("COMMIT"))
        release.start()
        lifecycle.reserve_job(partial(open_store, TOPOLOGY, tmp_path), request("a"), TOPOLOGY)
        release.join()
    with open_store(TOPOLOGY, tmp_path) as jobs:
        assert list(jobs.jobs) == ["a"]


def test_a_file_of_another_version_is_refused_and_kept(tmp_path: Path) -> None:
    with open_store(TOPOLOGY, tmp_path):
        pass
    path = tmp_path / "lab.jobs.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(JobError, match="has schema 99"), open_store(TOPOLOGY, tmp_path):
        pass
    assert path.exists()


def test_the_advice_for_a_damaged_file_costs_no_living_job(tmp_path: Path) -> None:
    with open_store(TOPOLOGY, tmp_path):
        pass
    (tmp_path / "lab.jobs.sqlite").write_bytes(b"not a database" * 400)
    for path in tmp_path.glob("lab.jobs.sqlite-*"):
        path.unlink()
    with pytest.raises(JobError, match=r"the job file .* is damaged") as caught, open_store(TOPOLOGY, tmp_path):
        pass
    assert "leaves the jobs on the switches alone" in str(caught.value)


def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path: Path) -> None:
    with open_store(TOPOLOGY, tmp_path) as jobs:
        jobs.put(JobRecord(request("old").plan(TOPOLOGY, jobs.allocator)))
    with sqlite3.connect(tmp_path / "lab.jobs.sqlite") as database:
        database.execute("DROP TABLE kept")
        database.execute("DROP TABLE foreign_jobs")
        (plan,) = database.execute("SELECT plan FROM jobs").fetchone()
        stored = json.loads(plan)["parts"][""]
        del stored["rail"]
        for stream in stored["streams"]:
            del stream["slots"]
        database.execute("UPDATE jobs SET plan = ?", (json.dumps(stored),))
        database.execute("DELETE FROM settings WHERE name IN ('generation_key', 'owner')")
        database.execute("PRAGMA user_version = 1")
    with open_store(TOPOLOGY, tmp_path) as jobs:
        assert jobs.get("old").first.rail is None
        assert jobs.allocator.clean == 0, "the order is a new one: what was given out must be scrubbed first"
        key = jobs.allocator.order.key
        assert jobs.kept("s1") is None
        jobs.keep("s1", "{}")
    with open_store(TOPOLOGY, tmp_path) as jobs:
        assert jobs.kept("s1") == "{}"
        assert jobs.allocator.order.key == key


def test_old_generations_are_scrubbed_before_they_are_given_out_again(
    tmp_path: Path, client: SwitchClient, fake: RunningFake
) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    clients = {"s1": client}
    kept = lifecycle.deploy_job(store, lifecycle.reserve_job(store, request("kept"), TOPOLOGY), TOPOLOGY, clients)
    mine = kept.group.first.stream("gradients").gen
    old = (mine + 1000) % 0xFFFF + 1
    client.write_registers("slot_tag.tag", {3: old << 32 | 17, 4: mine << 32 | 5})
    heartbeat = next(name for name in client.p4info.names("register") if name.endswith(".heartbeat"))
    # The low bit of the generation is the lowest above the 64 bits of ack and credit.
    client.write_registers(heartbeat, {0: mine << 64 | 7 << 32 | 9, 1: old << 64 | 7 << 32 | 9, 2: (mine ^ 1) << 64})
    with store() as jobs:
        jobs.allocator.clean = 1
    with pytest.raises(JobError, match="scrub"):
        lifecycle.reserve_job(store, request("early"), TOPOLOGY)

    def reload(_name: str, _client: SwitchClient) -> None:
        raise AssertionError("its registers can be written")

    with pytest.raises(JobError, match="s1 does not answer"):
        lifecycle.keep_generations_clean(store, TOPOLOGY, {}, reload)
    lifecycle.keep_generations_clean(store, TOPOLOGY, clients, reload)
    assert client.register("slot_tag.tag", 3) == {3: 0}
    assert client.register("slot_tag.tag", 4) == {4: mine << 32 | 5}, "a living job keeps what it has"
    beats = client.register(heartbeat)
    assert (beats[0], beats[1]) == (mine << 64 | 7 << 32 | 9, 0)
    assert beats[2] == 0 or mine ^ 1 in {stream.gen for stream in kept.group.first.streams}
    lifecycle.reserve_job(store, request("late"), TOPOLOGY)

    with store() as jobs:
        jobs.allocator.clean = 0
    fake.switch.no_registers = True
    reloaded: list[str] = []
    lifecycle.keep_generations_clean(store, TOPOLOGY, clients, lambda name, _: reloaded.append(name))
    assert reloaded == ["s1"], "BMv2 has no other way to forget"


def test_a_job_that_a_switch_refuses_is_forgotten(tmp_path: Path, client: SwitchClient) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    record = lifecycle.reserve_job(store, request("x"), TOPOLOGY)
    gen = record.group.first.streams[0].gen
    client.insert(
        TableEntry(
            "jobs", {"gen": gen, "port": 1}, "root", {"mode": 1, "job": 1, "group": 2, "src_ip": 1, "src_udp": 1}
        )
    )
    with pytest.raises(TakenError, match="ALREADY_EXISTS"):
        lifecycle.deploy_job(store, record, TOPOLOGY, {"s1": client}, undisturbed=lambda _: True)
    with store() as jobs:
        assert jobs.jobs == {}
    assert client.read("receivers") == []


def test_a_job_that_a_switch_does_not_let_go_stays_noted_as_being_removed(
    tmp_path: Path, client: SwitchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    record = lifecycle.deploy_job(store, lifecycle.reserve_job(store, request("x"), TOPOLOGY), TOPOLOGY, {"s1": client})
    with pytest.raises(JobError, match="runs over switch s1, to which there is no connection; `catchment job remove x"):
        lifecycle.remove_job(store, "x", {})
    with store() as jobs:
        assert jobs.record("x").state is JobState.UP, "nothing has happened to it"

    def refuse(*_: object) -> None:
        raise SwitchError("switch s1: Deadline Exceeded", code="DEADLINE_EXCEEDED")

    monkeypatch.setattr(client, "delete", refuse)
    with pytest.raises(SwitchError):
        lifecycle.remove_job(store, "x", {"s1": client})
    with store() as jobs:
        assert jobs.record("x").state is JobState.REMOVING
        assert jobs.deployed == []
        assert jobs.get("x") == record.group


def test_two_jobs_of_a_host_have_two_ports_even_after_a_restart(tmp_path: Path) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    first = lifecycle.reserve_job(store, request("first"), TOPOLOGY).group.first
    second = lifecycle.reserve_job(store, request("second"), TOPOLOGY).group.first
    assert all(first.ports[host] != second.ports[host] for host in first.ports)


@pytest.mark.parametrize("how", ["removed", "renewed"])
def test_a_generation_that_outlived_scrubbing_is_not_given_out_until_registers_are_scrubbed_again(
    tmp_path: Path, how: str
) -> None:
    store = partial(open_store, TOPOLOGY, tmp_path)
    kept = lifecycle.reserve_job(store, request("kept"), TOPOLOGY)
    old = {stream.gen for stream in kept.group.first.streams}
    with store() as jobs:
        jobs.note_scrubbed()
    if how == "removed":
        lifecycle.forget_job(store, "kept")
    else:
        lifecycle.renew_job(store, "kept", TOPOLOGY, {})
    with store() as jobs:
        allocator = jobs.allocator
        allocator.pass_over(allocator.clean - 1)
        assert allocator.generation() not in old
        with pytest.raises(JobError, match="scrub them first"):
            allocator.generation()


def test_scrubbing_leaves_a_generation_that_the_switch_has_entries_of(tmp_path: Path, client: SwitchClient) -> None:
    """It is another control plane's, or younger than the look at the jobs."""
    store = partial(open_store, TOPOLOGY, tmp_path)
    client.insert(
        TableEntry("jobs", {"gen": 77, "port": 1}, "root", {"mode": 1, "job": 1, "group": 2, "src_ip": 1, "src_udp": 1})
    )
    client.write_registers("slot_tag.tag", {3: 77 << 32 | 17, 4: 78 << 32 | 5})
    with store() as jobs:
        jobs.allocator.clean = 0
    lifecycle.keep_generations_clean(store, TOPOLOGY, {"s1": client}, lambda *_: None)
    assert client.register("slot_tag.tag", 3) == {3: 77 << 32 | 17}
    assert client.register("slot_tag.tag", 4) == {4: 0}
