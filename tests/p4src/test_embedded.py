"""The program under the embedded compiler, frame for frame against the model, state included."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from embedded_target import EmbeddedTarget
from frame_builder import job_frame
from register_view import register_view
from scenarios import Build, Traffic, base_tables, random_tables
from targets import compare

from catchment.sim.golden.switch_model import SwitchModel
from catchment.sim.golden.switch_tables import Fault
from catchment.wire.generated.constants import DropReason, Header, PacketType


def run(rng: random.Random, build: Build, frames: int) -> None:
    """One switch and one model through the same random tables and frames; then everything they hold is equal."""
    target = EmbeddedTarget(build)
    model = SwitchModel(build.lanes, build.slots, build.max_workers, build.jobs, dice=lambda: 0)
    model.tables = random_tables(rng)
    traffic = Traffic(rng, build.lanes)
    compare(target, model, [traffic.next() for _ in range(frames)])
    for name, cells in register_view(model).items():
        assert target.switch.read_registers(name) == cells, f"register {name}"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model(rng: random.Random, lanes: int) -> None:
    for _ in range(4):
        run(rng, Build(lanes=lanes), 2000)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("build", [Build(8, 16, 1, 4), Build(8, 16, 32, 4), Build(8, 64, 9, 5)])
def test_other_sizes(rng: random.Random, build: Build) -> None:
    run(rng, build, 2000)


def test_faults_strike_with_their_probability() -> None:
    """Ingress 1/4 of all, egress 1/2 of PARAM: within six standard deviations of 8,000 frames."""
    target = EmbeddedTarget(Build())
    tables = base_tables()
    tables.ingress_faults = [Fault(4, 0, 0, 1 << 30)]
    tables.egress_faults = [Fault(2, PacketType.PARAM, 0xF, 1 << 31)]
    target.load(tables)
    frame = job_frame(Header(type=PacketType.PARAM, gen=11), port=4)
    count = 8000
    left = Counter(port for _ in range(count) for port, _ in target.switch.inject(4, frame))
    assert abs(left[1] - 0.75 * count) < 6 * (count * 0.75 * 0.25) ** 0.5
    assert left[3] == left[1]
    assert abs(left[2] - 0.5 * left[1]) < 6 * (left[1] * 0.25) ** 0.5
    assert target.drops() == {
        DropReason.FAULT_INGRESS: count - left[1],
        DropReason.FAULT_EGRESS: left[1] - left[2],
    }


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [8, 64, 256])
def test_embedded_equals_the_model_for_long(rng: random.Random, lanes: int) -> None:
    for _ in range(20):
        run(rng, Build(lanes=lanes), {8: 10_000, 64: 5_000, 256: 2_000}[lanes])
