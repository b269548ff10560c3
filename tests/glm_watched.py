"""Trainings of linear models that somebody harms in the middle: what tests of them on several labs have in common."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from catchment.host.glm import Epoch, GlmError, Prepared, Samples, Training, prepare
from catchment.sim.glm import network_runner
from catchment.sim.glm.labs import Lab, open_lab
from catchment.sim.glm.network_runner import NetworkRunner


def prepared_samples(rng: random.Random, workers: int, epochs: int) -> Prepared:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    labels = np.arange(100) % 2
    samples = Samples.of(draw.random((100, 64 * workers)), labels)
    return prepare(samples, Training(workers=workers, batch=8, epochs=epochs))


class Watched:
    """The labs and workers that runners make, to do them harm."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.labs: list[Any] = []
        self.workers: list[subprocess.Popen[str]] = []
        self.folders: list[Path] = []

        def opened(*arguments: Any, logs: Path, **options: Any) -> Lab:
            lab: Any = open_lab(*arguments, logs=logs, **options)
            start = lab.popen
            lab.popen = lambda *argv, **with_options: self._kept(start, *argv, **with_options)
            self.labs.append(lab)
            self.folders.append(logs)
            return lab  # type: ignore[no-any-return]

        monkeypatch.setattr(network_runner, "open_lab", opened)

    def _kept(self, start: Callable[..., subprocess.Popen[str]], *argv: Any, **options: Any) -> subprocess.Popen[str]:
        self.workers.append(start(*argv, **options))
        return self.workers[-1]

    def kill_worker(self) -> None:
        """The second."""
        self.workers[1].kill()

    def kill_switch(self) -> None:
        """End the switch of the shared-memory lab."""
        self.labs[0].lab.kill_switch()

    def nothing_is_left(self) -> bool:
        return all(worker.poll() is not None for worker in self.workers) and not any(map(os.path.exists, self.folders))


def failure(prepared: Prepared, runner: NetworkRunner, harm: Callable[[], None]) -> str:
    """What a training says in whose third epoch somebody is harmed."""

    def on_epoch(_: Epoch) -> None:
        epochs.append(1)
        if len(epochs) == 2:
            harm()

    epochs: list[int] = []
    with pytest.raises(GlmError) as caught:
        runner.run(prepared, on_epoch)
    return str(caught.value)
