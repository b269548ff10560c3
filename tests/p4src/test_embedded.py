"""The program under the embedded compiler, frame for frame against the model, state included."""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from register_view import register_view
from scenarios import Build, Traffic, random_tables
from targets import compare

from sim.golden.switch_model import SwitchModel


def run(rng: random.Random, build: Build, frames: int) -> None:
    """One switch and one model through the same random tables and frames; then everything they hold is equal."""
    target = EmbeddedTarget(build)
    model = SwitchModel(build.lanes, build.slots, build.max_workers, build.jobs, dice=lambda: 0)
    model.tables = random_tables(rng)
    traffic = Traffic(rng, build.lanes)
    compare(target, model, [traffic.next() for _ in range(frames)])
    for name, cells in register_view(model).items():
        assert target.switch.read_registers(name) == cells, f"register {name}"


@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model(rng: random.Random, lanes: int) -> None:
    for _ in range(4):
        run(rng, Build(lanes=lanes), 2000)


@pytest.mark.parametrize("build", [Build(8, 16, 1, 4), Build(8, 16, 32, 4), Build(8, 64, 9, 5)])
def test_other_sizes(rng: random.Random, build: Build) -> None:
    run(rng, build, 2000)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model_for_long(rng: random.Random, lanes: int) -> None:
    for _ in range(20):
        run(rng, Build(lanes=lanes), 10_000)
