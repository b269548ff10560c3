"""The quick start of docs/howto/pytorch.md: torchrun, several processes, one changed line."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from crew import FOLDER, GROUPS, PATIENCE, ROOT


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def torchrun(*arguments: str, ranks: int, group: str, rendezvous: Sequence[str] = ("--standalone",)) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CATCHMENT_")}
    run = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *rendezvous, "--nproc-per-node", str(ranks), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**environment, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "CATCHMENT_PROCESS_GROUP": group},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.sampled(4)
@GROUPS
def test_the_demo_trains_under_torchrun(group: str) -> None:
    said = torchrun("-m", "catchment.demo.ddp", "--preset", "tiny", "--steps", "21", ranks=2, group=group)
    losses = [float(loss) for loss in re.findall(r"loss (\S+),", said)]
    assert len(losses) == 3 and losses[-1] < losses[0] < 6
    weights = re.findall(r"rank \d: weights (\w{16})", said)
    assert len(weights) == 2 and len(set(weights)) == 1


@pytest.mark.slow
@GROUPS
def test_fsdp2_on_a_mesh_trains_under_torchrun(group: str) -> None:
    said = torchrun("tests/host/torch/distributed/sharded.py", ranks=4, group=group)
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", said)]
    assert len(losses) == 2 and losses[1] < 0.8 * losses[0], said
    norms = re.findall(r"rank \d: norm (\S+)", said)
    assert len(norms) == 4 and len(set(norms)) == 1, said


@pytest.mark.sampled(4)
@GROUPS
@pytest.mark.parametrize(
    "rendezvous", [("--standalone",), ("--rdzv-backend", "static", "--master-addr", "127.0.0.1", "--master-port", "0")]
)
def test_ranks_that_torchrun_starts_again_make_their_groups_anew(
    rendezvous: tuple[str, ...], group: str, tmp_path: Path
) -> None:
    """--standalone is the c10d rendezvous.  Within each attempt the group is also destroyed and made again."""
    ports = [str(free_port()) if word == "0" else word for word in rendezvous]
    script = str(FOLDER / "phoenix.py")
    said = torchrun("--max-restarts", "1", script, str(tmp_path), ranks=2, group=group, rendezvous=ports)
    assert sorted(re.findall(r"rank (\d) of 2: sums \[3.0, 3.0\]", said)) == ["0", "1"], said
    assert (tmp_path / "died").exists()
