"""A rank whose process was stopped: how long that was delays no verdict about the others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from catchment.sim.lab.shm_lab import ShmLab

TIMEOUT = 1.0
PAUSE = 8.0
MEMBER = f"""
import json, sys
import numpy as np
from catchment.host.collectives import CollectiveError, Communicator

job = json.loads(sys.argv[1])
with Communicator.of_job(job, port=sys.argv[2], timeout={TIMEOUT}) as ranks:
    one = np.ones(100, np.int32)
    ranks.all_reduce(one).wait()
    print("ready", flush=True)
    sys.stdin.readline()
    first = ranks.all_reduce(one)
    second = ranks.all_reduce(one) if job["wid"] == 0 else None
    print("begun", flush=True)
    first.wait()
    print("the first is done", flush=True)
    try:
        if second is None:
            sys.stdin.readline()
        else:
            second.wait()
    except CollectiveError as error:
        print(error, flush=True)
"""


@pytest.mark.sampled(8)
def test_who_was_stopped_is_not_patient_for_as_long_again() -> None:
    """A sum has come meanwhile, and its sender has died since."""
    with ShmLab(["w0", "w1"], in_callers=False) as lab:
        job = lab.allreduce(["w0", "w1"], slots=32, name="paused")
        stopped, dies = (
            subprocess.Popen(
                [sys.executable, "-c", MEMBER, json.dumps(job.describe(host)), f"shm:{lab.path(host)}"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
            for host in ("w0", "w1")
        )  # fmt: skip
        try:
            for member in (stopped, dies):
                assert line(member) == "ready"
            go(stopped)
            assert line(stopped) == "begun"
            stopped.send_signal(signal.SIGSTOP)
            go(dies)
            assert [line(dies), line(dies)] == ["begun", "the first is done"]
            dies.kill()
            time.sleep(PAUSE)
            woken = time.monotonic()
            stopped.send_signal(signal.SIGCONT)
            assert line(stopped) == "the first is done"
            assert "rank 1" in line(stopped)
            assert time.monotonic() - woken < PAUSE, "it has waited for as long as it was stopped"
        finally:
            for member in (stopped, dies):
                member.kill()
                member.communicate()


def line(member: subprocess.Popen[str]) -> str:
    assert member.stdout is not None
    return member.stdout.readline().strip()


def go(member: subprocess.Popen[str]) -> None:
    assert member.stdin is not None
    member.stdin.write("\n")
    member.stdin.flush()
