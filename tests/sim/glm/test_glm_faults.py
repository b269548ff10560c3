"""Trainings whose workers or switch die in the middle: an error that names who, and nothing left; two at once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from glm_watched import Watched, failure, prepared_samples

from catchment.checkout import ROOT
from catchment.host.glm import LocalRunner, train
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.network_runner import NetworkRunner

ENDLESS = 100_000


@pytest.mark.sampled(4)
def test_a_worker_that_is_killed_is_named(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, prepared = Watched(monkeypatch), prepared_samples(rng, 3, ENDLESS)
    said = failure(prepared, NetworkRunner(LabKind.SHM), watched.kill_worker)
    assert "w1: process" in said and "SIGKILL" in said
    assert watched.nothing_is_left()


@pytest.mark.slow
def test_a_switch_that_is_killed_is_named(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, prepared = Watched(monkeypatch), prepared_samples(rng, 2, ENDLESS)
    said = failure(prepared, NetworkRunner(LabKind.SHM, timeout=20.0), watched.kill_switch)
    assert "the switch s1 is lost" in said
    assert watched.nothing_is_left()


@pytest.mark.sampled(4)
def test_two_trainings_at_once(rng: random.Random) -> None:
    """Each with a switch of its own; both have the golden model's weights in spite of lost frames."""
    trainings = [prepared_samples(rng, 2, 3) for _ in range(2)]
    found: dict[int, Any] = {}

    def run(number: int) -> None:
        found[number] = train(trainings[number], NetworkRunner(LabKind.SHM, loss=0.01))[0].weights

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, prepared in enumerate(trainings):
        assert np.array_equal(found[number], train(prepared, LocalRunner())[0].weights)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
@pytest.mark.sampled(4)
def test_a_signal_that_ends_it_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    """No folder, no process; no model either."""
    data, temporary = tmp_path / "data.libsvm", tmp_path / "tmp"
    data.write_text("".join(f"{k % 2} {k % 7 + 1}:1\n" for k in range(64)))
    temporary.mkdir()
    command = ["glm", "train", str(data), "--lab", "shm", "--workers", "2", "--epochs", str(ENDLESS)]
    process = subprocess.Popen(
        [sys.executable, "-m", "catchment.cli", *command],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not list(temporary.glob("catchment-glm-*/0-*.npy")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        said = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in said, said
    assert list(temporary.iterdir()) == [] and not list(tmp_path.glob("*.npz"))
    assert not [line for line in _command_lines() if str(temporary) in line]


def _command_lines() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode(errors="replace"))
        except OSError:
            continue  # it has ended meanwhile
    return found
