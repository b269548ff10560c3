"""A training with DDP in a controller's job with tags goes on past the end of its keys."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from live_ranks import JOB, WAIT, LiveRanks

from catchment.checkout import ROOT

STEPS = 20
"""Each has about 170 vectors, so these are a dozen terms."""
SCRIPT = Path(__file__).with_name("torch_rank.py")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("group", ["c++", pytest.param("python", marks=pytest.mark.slow)])
def test_a_training_outlives_its_keys(tmp_path: Path, group: str) -> None:
    with LiveRanks(2) as live:
        own = {key: value for key, value in os.environ.items() if not key.startswith("CATCHMENT_") or "DIR" in key}
        settings = {
            **own,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "CATCHMENT_PROCESS_GROUP": group,
            "CATCHMENT_CONTROLLER": live.controller.address,
            "CATCHMENT_CERTIFICATES": str(live.controller.certificates),
            "CATCHMENT_JOB": JOB,
            "CATCHMENT_TOKEN": live.token,
        }
        ranks = [
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(rank), "2", str(tmp_path / "store"), str(STEPS)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd=ROOT,
                env={**settings, "CATCHMENT_HOST": host},
            )
            for rank, host in enumerate(live.names)
        ]
        try:
            ended = [rank.communicate(timeout=2 * WAIT) for rank in ranks]
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        assert [rank.returncode for rank in ranks] == [0, 0], [complaint for _, complaint in ended]
        for output, _ in ended:
            said = json.loads(output.splitlines()[-1])
            assert said["wrong"] == 0 and said["off"] < 1e-4
        assert live.stream().term >= 8 and live.epoch() == 1
        assert live.refused() == 0
