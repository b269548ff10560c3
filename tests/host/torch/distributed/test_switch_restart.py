"""The switch of a job file is killed while ranks are in all_reduce: they are told, or go on if it may come back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from crew import FOLDER, GROUPS, PATIENCE, ROOT, environment

from catchment.sim.lab.shm_lab import ShmLab

NAMES = ["w0", "w1", "w2"]


def job_file(lab: ShmLab, folder: Path) -> Path:
    """A job of all hosts of the lab, on its shared-memory ports."""
    job = lab.allreduce(NAMES, slots=32)
    members = {name: {**job.describe(name), "port": f"shm:{lab.path(name)}"} for name in NAMES}
    file = folder / "job.json"
    file.write_text(json.dumps({"name": "job", "kind": "allreduce", "workers": NAMES, "members": members}))
    return file


def start(script: str, *arguments: str, **settings: str) -> list[subprocess.Popen[str]]:
    """A process for each rank, all of which have started."""
    ranks = [
        subprocess.Popen(
            [sys.executable, str(FOLDER / script), str(rank), str(len(NAMES)), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(settings),
        )
        for rank in range(len(NAMES))
    ]
    for rank in ranks:
        assert rank.stdout is not None
        line = rank.stdout.readline()
        assert line, rank.communicate(timeout=PATIENCE)[1]
    return ranks


def ends(ranks: list[subprocess.Popen[str]]) -> list[Any]:
    """The last line of JSON of each."""
    try:
        ended = [rank.communicate(timeout=PATIENCE) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), [complaint for _, complaint in ended]
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@GROUPS
def test_all_reduces_survive_restarts_of_the_switch(tmp_path: Path, group: str) -> None:
    store, enough = tmp_path / "store", tmp_path / "enough"
    with ShmLab(NAMES) as lab:
        settings = {"CATCHMENT_PROCESS_GROUP": group, "CATCHMENT_JOB": str(job_file(lab, tmp_path))}
        ranks = start("restart_member.py", str(store), str(enough), **settings, CATCHMENT_ABSENT="60")
        for _ in range(2):
            lab.kill_switch()
            lab.restart_switch()
        enough.touch()
        said = ends(ranks)
    assert said == [{"sums": said[0]["sums"], "wrong": []}] * len(NAMES)


@GROUPS
def test_a_switch_that_dies_is_named_by_every_rank(tmp_path: Path, group: str) -> None:
    """Long before the group's timeout, which is longer than the test's patience; by what gloo would do, too."""
    with ShmLab(NAMES) as lab:
        settings = {"CATCHMENT_PROCESS_GROUP": group, "CATCHMENT_JOB": str(job_file(lab, tmp_path))}
        ranks = start("dead_switch_member.py", str(tmp_path / "store"), **settings)
        lab.kill_switch()
        said = ends(ranks)
    for told in said:
        assert [one["kind"] for one in told] == ["unreachable"] * 2, told
        assert all("the switch s1 at" in one["text"] and "has gone" in one["text"] for one in told), told
