"""Much random traffic through both programs, each against its model: what planted bugs of P4 must not survive."""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from scenarios import SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Traffic, base_tables
from targets import compare

SCENARIOS = {"luwu": (STREAMS, WORKER_TYPES), "p4sgd": (SLOT_STREAMS, SLOT_TYPES)}
# Each of 4000 frames. The rarest planted bug shows in half of them, where eight workers of a rack have met in a slot.
TRIES = 30


@pytest.mark.slow
@pytest.mark.parametrize("program", SCENARIOS)
def test_random_traffic_is_answered_as_by_the_model(program: str, rng: random.Random) -> None:
    build = Build(program=program)
    streams, types = SCENARIOS[program]
    for _ in range(TRIES):
        model = build.model()
        model.tables = base_tables(streams)
        model.tables.packed = {stream.gen for stream in streams}
        traffic = Traffic(rng, build.lanes, streams, types)
        compare(EmbeddedTarget(build), model, [traffic.next() for _ in range(4000)])
