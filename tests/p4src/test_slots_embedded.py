"""p4sgd.p4 under the embedded compiler, frame for frame against the model, state included."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from embedded_target import EmbeddedTarget
from register_view import slot_register_view
from scenarios import SLOT_STREAMS, SLOT_TYPES, Build, Traffic, base_tables, random_tables
from targets import compare

from catchment.sim.golden.slot_model import SlotModel
from catchment.sim.golden.switch_frames import packet_type
from catchment.sim.golden.switch_tables import Tables
from catchment.wire.generated.constants import UDP_PORT, PacketType


def visible(tables: Tables) -> Tables:
    """`tables` with receivers at our own port, so that `packet_type` can name what leaves."""
    for key, receiver in tables.receivers.items():
        tables.receivers[key] = type(receiver)(receiver.dst_mac, receiver.dst_ip, UDP_PORT, 0, 0)
    return tables


def run(rng: random.Random, build: Build, frames: int) -> None:
    """One switch and one model through the same random tables and frames; then everything they hold is equal."""
    target = EmbeddedTarget(build)
    model = build.model(dice=lambda: 0)
    assert isinstance(model, SlotModel)
    model.tables = random_tables(rng, SLOT_STREAMS)
    traffic = Traffic(rng, build.lanes, SLOT_STREAMS, SLOT_TYPES)
    compare(target, model, [traffic.next() for _ in range(frames)])
    for name, cells in slot_register_view(model).items():
        assert target.switch.read_registers(name) == cells, f"register {name}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model(rng: random.Random, lanes: int) -> None:
    for _ in range(4):
        run(rng, Build(lanes=lanes, program="p4sgd"), 2000)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("build", [Build(8, 16, 32, 4, "p4sgd"), Build(8, 64, 64, 5, "p4sgd")])
def test_other_sizes(rng: random.Random, build: Build) -> None:
    run(rng, build, 2000)


def test_every_answer_is_reached() -> None:
    """Otherwise program and model would agree about nothing."""
    seen: Counter[tuple[int, int]] = Counter()
    for seed in range(4):  # sequence numbers go up, so a long run ends with nothing but old ones
        model = SlotModel(8, 16, 8, 4)
        model.tables = visible(base_tables(SLOT_STREAMS))
        traffic = Traffic(random.Random(seed), 8, SLOT_STREAMS, SLOT_TYPES)
        for _ in range(6000):
            port, frame = traffic.next()
            output = model.inject(port, frame)
            for _, out in output:
                seen[(packet_type(out), len(output))] += 1
    several = {(kind, copies) for kind in (PacketType.FA, PacketType.CNF) for copies in (1, 2, 3)}
    several |= {(PacketType.PA, 1), (PacketType.ACK, 1)}  # a leaf's to its parent
    assert several <= {key for key, count in seen.items() if count >= 10}, seen


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model_for_long(rng: random.Random, lanes: int) -> None:
    """340,000 frames in all."""
    for _ in range(20):
        run(rng, Build(lanes=lanes, program="p4sgd"), {8: 10_000, 64: 5_000, 256: 2_000}[lanes])
