"""Gradients through Verilated NICs and the compiled switch, bit for bit what numpy and the golden formats give."""

from __future__ import annotations

import random

import numpy as np
import pytest

from catchment.sim.cosim import CosimError, Faults, Machine
from catchment.sim.cosim.machine import digest
from catchment.sim.cosim.rounds import as_type, gradients, parameters
from catchment.wire.generated.constants import DataType

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)


def random_parts(rng: random.Random, workers: int, count: int) -> list[np.ndarray]:
    numbers = np.random.default_rng(rng.getrandbits(64))
    return [numbers.normal(size=count).astype(np.float32) for _ in range(workers)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("workers", [2, 8, pytest.param(16, marks=pytest.mark.slow)])
def test_sums_and_parameters_equal_numpys(workers: int, rng: random.Random) -> None:
    with Machine.star(workers, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu([f"w{i}" for i in range(workers)], root="opt", slots=256)
        for dtype in FLOATS:
            real = random_parts(rng, workers, rng.randrange(1, 20_000))
            total, times = gradients(machine, job, [as_type(part, dtype) for part in real], dtype, exponent=3)
            assert times.latency > 0
            parameters(machine, job, total.tobytes())


def test_a_wrong_sum_is_found(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    from catchment.sim.golden import formats

    add = formats.add_lanes
    monkeypatch.setattr(formats, "add_lanes", lambda vectors: add(vectors) ^ np.int32(1 << 20))
    with Machine.star(2, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["w0", "w1"], root="opt")
        with pytest.raises(CosimError, match="opt got other bytes"):
            gradients(machine, job, random_parts(rng, 2, 100), DataType.FP32, exponent=3)


def test_one_seed_is_one_run_however_far_a_nic_runs_ahead(rng: random.Random) -> None:
    def play(seed: int, batch: int) -> tuple[int, ...]:
        with Machine.star(3, seed=seed, batch=batch) as machine:
            job = machine.luwu(["w0", "w1", "w2"], root="opt")
            for cable in machine.cables.values():
                cable.faults(Faults(loss=0.02, damage=0.01, duplicate=0.02, reorder=0.05))
            parts = random_parts(random.Random(1), 3, 3000)
            gradients(machine, job, parts, DataType.FP32, exponent=3)
            machine.run(1000)
            return digest(machine)

    seed = rng.getrandbits(32)
    assert play(seed, 256) == play(seed, 1)
    assert play(seed, 256) != play(seed + 2, 256)


@pytest.mark.parametrize("software", [("w1",), ("opt",), ("w0", "w1", "w2", "opt")])
def test_software_takes_any_place_in_a_job_of_hardware(software: tuple[str, ...], rng: random.Random) -> None:
    with Machine.star(3, software=software, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["w0", "w1", "w2"], root="opt", slots=256)
        for cable in machine.cables.values():
            cable.faults(Faults(loss=0.01, duplicate=0.01, reorder=0.02))
        for dtype in FLOATS:
            real = random_parts(rng, 3, rng.randrange(1, 10_000))
            total, _ = gradients(machine, job, [as_type(part, dtype) for part in real], dtype, exponent=3)
            parameters(machine, job, total.tobytes())
