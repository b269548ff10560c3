"""Much random traffic through both programs, each against its model: what planted bugs of P4 must not survive."""

from __future__ import annotations

import random

import pytest
from embedded_target import EmbeddedTarget
from scenarios import SLOT_STREAMS, SLOT_TYPES, STREAMS, WORKER_TYPES, Build, Stream, Traffic, base_tables
from targets import compare

from catchment.wire.generated.constants import Mode, PacketType

# Each of 4000 frames. The rarest planted bug shows in half of them, where eight workers of a rack have met in a slot.
many_times = pytest.mark.parametrize(
    "tries", [pytest.param(2, id="few"), pytest.param(30, id="many", marks=pytest.mark.slow)]
)


@many_times
def test_luwu_answers_random_traffic_as_its_model(tries: int, rng: random.Random) -> None:
    play(Build(program="luwu"), STREAMS, WORKER_TYPES, tries, rng)


@many_times
def test_p4sgd_answers_random_traffic_as_its_model(tries: int, rng: random.Random) -> None:
    play(Build(program="p4sgd"), SLOT_STREAMS, SLOT_TYPES, tries, rng)


def play(
    build: Build, streams: tuple[Stream, ...], types: dict[Mode, tuple[PacketType, ...]], tries: int, rng: random.Random
) -> None:
    """Play traffic of these streams to a program and to its model, a fresh one of each for every try."""
    for _ in range(tries):
        model = build.model()
        model.tables = base_tables(streams)
        model.tables.packed = {stream.gen for stream in streams}
        traffic = Traffic(rng, build.lanes, streams, types)
        compare(EmbeddedTarget(build), model, [traffic.next() for _ in range(4000)])
