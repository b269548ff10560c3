"""The quick start of docs/pytorch.md: torchrun, several processes, one changed line."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from crew import PATIENCE, ROOT


def torchrun(*arguments: str, ranks: int) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CATCHMENT_")}
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_demo_trains_under_torchrun() -> None:
    said = torchrun("-m", "catchment.demo.ddp", "--preset", "tiny", "--steps", "21", ranks=2)
    losses = [float(loss) for loss in re.findall(r"loss (\S+),", said)]
    assert len(losses) == 3 and losses[-1] < losses[0] < 6
    weights = re.findall(r"rank \d: weights (\w{16})", said)
    assert len(weights) == 2 and len(set(weights)) == 1


@pytest.mark.slow
def test_fsdp2_on_a_mesh_trains_under_torchrun() -> None:
    said = torchrun("tests/host/torch/distributed/sharded.py", ranks=4)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", said)]
    assert len(losses) == 2 and losses[1] < 0.8 * losses[0], said
    norms = re.findall(r"rank \d: norm (\S+)", said)
    assert len(norms) == 4 and len(set(norms)) == 1, said
