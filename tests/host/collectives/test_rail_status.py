"""What ranks of a job on several rails say of them on their machine."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from collective_lab import together
from rail_ranks import LANES, NAMES, RANKS, all_reduced, rail_sets

from catchment.controlplane.diagnosis import rails
from catchment.controlplane.networks.state import remove_dead_sockets
from catchment.host.collectives import RailPolicy
from catchment.host.collectives.rail_status import RailStatus
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.rail_report import SOCKETS, RailReport, RankReport, SplitReport

PATIENCE = 60.0
MANY_FILES = """
import os, resource, sys, threading
from catchment.controlplane.diagnosis import rails
from catchment.host.collectives.rail_status import RailStatus
from catchment.wire.rail_report import RankReport

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if soft < 2048:
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
while os.open(os.devnull, os.O_RDONLY) < 1100:
    pass
looks = threading.Semaphore(0)
def report():
    looks.release()
    return lambda: RankReport.from_json(sys.argv[1])
status = RailStatus(report)
seen = [looks.acquire(timeout=60) for _ in range(2)]
print(seen, [found.rank for found in rails.all_reports()])
status.close()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def labs() -> Iterator[list[ShmLab]]:
    with ExitStack() as exits:
        yield [exits.enter_context(ShmLab(NAMES, lanes=LANES, slots=1024)) for _ in range(2)]


def until(condition: Callable[[], bool], what: str) -> None:
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.005)


def test_every_rank_tells_of_its_rails_and_of_one_that_failed(
    folder: Path, labs: list[ShmLab], rng: random.Random
) -> None:
    with rail_sets(labs, policy=RailPolicy.FIXED, rates=[3 * 10**9, 10**9]) as ranks:
        assert all_reduced(ranks, rng, 400_000) == [None] * RANKS
        before = rails.all_reports()
        assert sorted(report.rank for report in before) == list(range(RANKS))
        for report in before:
            assert (report.job, report.policy, report.pid) == ("rails", "fixed", os.getpid())
            assert [(rail.name, rail.nominal) for rail in report.rails] == [("a", 3 * 10**9), ("b", 10**9)]
            assert report.rails[0].generation == ranks[report.rank].stream.gen
            longest = report.table[-1]
            assert sum(longest.shares) == longest.bytes
            if all(rail.state == "up" for rail in report.rails):  # a machine too slow to run a switch has incidents
                assert longest.shares[0] == 3 * longest.shares[1]
            assert sorted(report.table[0].shares) == [0, report.table[0].bytes], "a short operation is not split"
        labs[1].kill_switch()
        assert all_reduced(ranks, rng, 400_000) == [None] * RANKS  # nobody looks at a rail that nobody uses
        until(
            lambda: all(report.rails[1].state != "up" for report in rails.all_reports()), "nobody says that b is down"
        )
        for report in rails.all_reports():
            assert report.rails[1].carrier == "a" and report.rails[1].incidents >= 1
            assert all(row.shares == (row.bytes, 0) for row in report.table), "nothing more goes over b"
    assert rails.all_reports() == [] and list(folder.glob(SOCKETS)) == [], "they have closed"


def test_a_rank_that_is_dropped_is_not_kept_alive_by_who_tells_of_it(folder: Path, labs: list[ShmLab]) -> None:
    with rail_sets(labs) as ranks:
        assert len(rails.all_reports()) == RANKS
        together(ranks, lambda rank: rank.all_reduce(np.ones(10, np.float32)).wait())
    del ranks
    assert list(folder.glob(SOCKETS)) == []


REPORT = RankReport(
    "train", 2, 7, "waterfill", 3,
    (RailReport("a", 5, "up", True, "a", 1e-4, 10**9, 0, 1, 4096, 0, 0.0),),
    (SplitReport(4096, (4096,), (1e-4,), (10**9,)),),
)  # fmt: skip


def test_a_report_survives_json_and_others_are_refused() -> None:
    assert RankReport.from_json(REPORT.to_json()) == REPORT
    for text in (
        "",
        "[]",
        "{}",
        "7",
        '{"rails": [], "table": [], "job": "x"}',
        REPORT.to_json().replace("rank", "rang"),
    ):
        with pytest.raises(ValueError, match=r"report|JSON|Expecting"):
            RankReport.from_json(text)


def test_who_is_dead_or_says_something_else_is_left_out(folder: Path) -> None:
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "rails-1-0.sock"))
    status = RailStatus(lambda: lambda: replace(REPORT, rank=4))
    wrong = RailStatus(lambda: lambda: replace(REPORT, rails=()))
    try:
        assert [report.rank for report in rails.all_reports() if report.rails] == [4]
        assert remove_dead_sockets() == [folder / "rails-1-0.sock"]
    finally:
        status.close()
        wrong.close()
        status.close()
    assert list(folder.glob(SOCKETS)) == []


@pytest.mark.parametrize("says", [b"", b"x" * 65536], ids=["nothing", "without an end"])
def test_who_does_not_come_to_an_end_is_left(says: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rails, "_PATIENCE", 0.5)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listening, ThreadPoolExecutor(1) as other:
        listening.bind(str(folder / "rails-1-0.sock"))
        listening.listen()

        def talk() -> None:
            reader, _ = listening.accept()
            with reader, contextlib.suppress(OSError):  # it was left
                while says:
                    reader.sendall(says)
                reader.recv(1)

        talking = other.submit(talk)
        assert rails.all_reports() == []
        talking.result(PATIENCE)


def test_a_process_with_many_open_files_tells_of_its_rails(folder: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", MANY_FILES, REPORT.to_json()], capture_output=True, text=True, timeout=240, check=False
    )
    assert (told.stdout, told.returncode) == (f"[True, True] [{REPORT.rank}]\n", 0), told.stderr


def test_a_forked_child_neither_ends_nor_keeps_what_its_parent_tells(folder: Path) -> None:
    status = RailStatus(lambda: lambda: REPORT)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writer)
        status.close()
        os.read(reader, 1)  # until the parent has closed
        os._exit(0)
    try:
        assert [report.rank for report in rails.all_reports()] == [REPORT.rank]
        closing = threading.Thread(target=status.close, daemon=True)
        closing.start()
        closing.join(PATIENCE)
        assert not closing.is_alive() and list(folder.glob(SOCKETS)) == []
    finally:
        os.close(writer)
        os.waitpid(child, 0)
        os.close(reader)


def test_where_no_socket_can_be_nothing_is_said_and_nothing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / ("x" * 120)))
    status = RailStatus(lambda: lambda: REPORT)
    assert status.path is None
    status.close()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "file"))
    RailStatus(lambda: lambda: REPORT).close()
