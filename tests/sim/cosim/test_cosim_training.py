"""The demo's own training software on the machine: every gradient and parameter byte through RTL."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.sim.cosim import Faults
from catchment.sim.cosim.training import train_on_machine
from catchment.sim.training.options import TrainingOptions
from catchment.sim.training.root import digest_of
from catchment.sim.training.twin import train_exactly


def check(options: TrainingOptions, **more: object) -> None:
    trained = train_on_machine(options, **more)  # type: ignore[arg-type]
    losses: list[tuple[float, ...]] = []
    twin = train_exactly(options, len(options.passes), lambda _event, **facts: losses.append(tuple(facts["losses"])))
    assert trained.losses == tuple(losses)
    assert trained.digest == digest_of(twin.master)
    assert trained.frames > 0


def test_training_on_nics_gives_the_bits_of_the_software(tmp_path: Path, seed: int) -> None:
    options = TrainingOptions(
        workers=2, preset="tiny", steps=2, batch=2, lanes=64, seed=seed % 1000, network="memory", output=tmp_path
    )
    check(options, faults=Faults(loss=0.002, reorder=0.01), software=["w1"])


@pytest.mark.slow
def test_three_steps_of_the_demos_model(tmp_path: Path, seed: int) -> None:
    options = TrainingOptions(
        workers=4, preset="demo", steps=3, batch=2, lanes=64, seed=seed % 1000, network="memory", output=tmp_path
    )
    check(options)
