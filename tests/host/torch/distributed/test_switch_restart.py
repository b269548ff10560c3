"""The switch is killed and started again while ranks are in all_reduce: they go on, and every sum is exact."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from crew import FOLDER, GROUPS, PATIENCE, ROOT, environment

from catchment.sim.lab.shm_lab import ShmLab


@GROUPS
def test_all_reduces_survive_restarts_of_the_switch(tmp_path: Path, group: str) -> None:
    names = ["w0", "w1", "w2"]
    file, enough = tmp_path / "job.json", tmp_path / "enough"
    with ShmLab(names) as lab:
        job = lab.allreduce(names, slots=32)
        members = {name: {**job.describe(name), "port": f"shm:{lab.path(name)}"} for name in names}
        file.write_text(json.dumps({"name": "job", "kind": "allreduce", "workers": names, "members": members}))
        ranks = [
            subprocess.Popen(
                [
                    sys.executable, str(FOLDER / "restart_member.py"), str(rank), str(len(names)),
                    str(tmp_path / "store"), str(enough),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env=environment({"CATCHMENT_PROCESS_GROUP": group, "CATCHMENT_JOB": str(file)}),
            )
            for rank in range(len(names))
        ]  # fmt: skip
        try:
            for rank in ranks:
                assert rank.stdout is not None
                line = rank.stdout.readline()
                assert line, rank.communicate(timeout=PATIENCE)[1]
            for _ in range(2):
                lab.kill_switch()
                lab.restart_switch()
            enough.touch()
            ended = [rank.communicate(timeout=PATIENCE) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
    assert [rank.returncode for rank in ranks] == [0] * len(ranks), [complaint for _, complaint in ended]
    said = [json.loads(output.splitlines()[-1]) for output, _ in ended]
    assert said == [{"sums": said[0]["sums"], "wrong": []}] * len(names)
