"""A frame in shared memory may change while a rank looks at it: the rank goes on, or says what is wrong."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
from shm_middle import Middle

from catchment.checkout import ROOT
from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.lab.shm_lab import ShmLab

OPERATIONS = 200
PATIENCE = 400.0


def test_frames_that_change_while_they_are_read(tmp_path: Path, rng: random.Random) -> None:
    with ShmLab(["w0", "w1"]) as lab, Middle(tmp_path / "port", lab.path("w0"), rng) as middle:
        job = lab.allreduce(["w0", "w1"])
        ports = {"w0": tmp_path / "port", "w1": lab.path("w1")}
        members = [
            subprocess.Popen(
                [sys.executable, __file__, json.dumps(job.describe(name)), str(port)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for name, port in ports.items()
        ]
        try:
            ends = [member.communicate(timeout=PATIENCE) for member in members]
        finally:
            for member in members:
                member.kill()
                member.wait()
    for member, (said, complaint) in zip(members, ends, strict=True):
        assert member.returncode == 0, complaint[-3000:]
        assert said.startswith(("done", "failed")), said
    assert middle.spoilt > 0


def main() -> None:
    """A rank: sums until it is done, or until the switch seems broken."""
    description, port = json.loads(sys.argv[1]), sys.argv[2]
    try:
        with Communicator.of_job(description, port=f"shm:{port}", timeout=10.0) as ranks:
            for size in range(OPERATIONS):
                ranks.all_reduce(np.full(1 + 37 * size, 1.5, np.float32)).wait(300.0)
        print("done")
    except CollectiveError as error:
        print("failed:", error)


if __name__ == "__main__":
    main()
