"""The program under p4c and BMv2, frame for frame against the model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bmv2_target import Bmv2Target, missing
from scenarios import Build, Traffic, random_tables
from targets import compare

from sim.golden.switch_model import SwitchModel

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_bmv2_equals_the_model(rng: random.Random, tmp_path: Path, lanes: int) -> None:
    build = Build(lanes=lanes)
    target = Bmv2Target(build, tmp_path)
    try:
        model = SwitchModel(lanes, build.slots, build.max_workers, build.jobs, dice=lambda: 0)
        model.tables = random_tables(rng)
        traffic = Traffic(rng, lanes)
        compare(target, model, [traffic.next() for _ in range(3000 if lanes == 8 else 800)])
    finally:
        target.close()
