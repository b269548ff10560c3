"""The program under p4c and BMv2, frame for frame against the model."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bmv2_target import Bmv2Target, missing
from scenarios import SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Traffic, random_tables
from targets import compare

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.mark.parametrize(
    ("lanes", "program"), [(8, "luwu"), (64, "luwu"), (256, "luwu"), (8, "p4sgd"), (64, "p4sgd"), (256, "p4sgd")]
)
def test_bmv2_equals_the_model(rng: random.Random, tmp_path: Path, lanes: int, program: str) -> None:
    build = Build(lanes=lanes, program=program)
    streams, types = (SLOT_STREAMS, SLOT_TYPES) if program == "p4sgd" else (STREAMS, WORKER_TYPES)
    target = Bmv2Target(build, tmp_path)
    try:
        model = build.model(dice=lambda: 0)
        model.tables = random_tables(rng, streams)
        traffic = Traffic(rng, lanes, streams, types)
        compare(target, model, [traffic.next() for _ in range(3000 if lanes == 8 else 800)])
    finally:
        target.close()
