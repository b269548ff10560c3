"""Ranks as processes or threads on shared-memory ports of one switch."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import rank_results

from catchment.checkout import ROOT
from catchment.controlplane.jobs import JobPlan
from catchment.host.collectives import Communicator
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.lab.tree_lab import TreeLab

MEMBER = Path(__file__).with_name("collective_member.py")
PATIENCE = 300.0


def command(task: dict[str, Any]) -> list[str]:
    """What starts a rank."""
    return [sys.executable, str(MEMBER), json.dumps(task)]


def start(lab: ShmLab, job: JobPlan, **task: Any) -> dict[str, subprocess.Popen[str]]:
    """A process for every rank."""
    return {
        name: subprocess.Popen(
            command({"description": job.describe(name), "port": f"shm:{lab.path(name)}", "timeout": 120.0, **task}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for name in job.workers
    }


def results(members: dict[str, subprocess.Popen[str]], patience: float = PATIENCE) -> dict[str, dict[str, Any]]:
    """What each rank has to say at its end."""
    return rank_results.results(members, patience)


def all_exact(said: dict[str, dict[str, Any]]) -> None:
    """No error, and nothing wrong."""
    assert {name: result.get("wrong", result) for name, result in said.items()} == {name: [] for name in said}


@contextmanager
def communicators(lab: ShmLab | TreeLab, job: JobPlan, **options: Any) -> Iterator[list[Communicator]]:
    """All ranks in this process."""
    ranks = [lab.communicator(job, name, **{"timeout": 100.0, **options}) for name in job.workers]
    try:
        yield ranks
    finally:
        for rank in ranks:
            rank.close()


def together(ranks: Sequence[Communicator], body: Callable[[Communicator], Any]) -> list[Any]:
    """`body` on every rank at once, each in a thread; what it returns, or the exception."""
    outcome: list[Any] = [None] * len(ranks)

    def run(index: int) -> None:
        try:
            outcome[index] = body(ranks[index])
        except Exception as error:
            outcome[index] = error

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(len(ranks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a rank hangs"
    return outcome
