"""Gradients of the demo's model, of real text, through the machine: every type, every number of workers."""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from catchment.sim.cosim import Machine
from catchment.sim.cosim.rounds import as_type, gradients, parameters
from catchment.sim.training.data import load_corpus
from catchment.sim.training.options import TrainingOptions
from catchment.sim.training.reference import Reference
from catchment.wire.generated.constants import DataType

pytestmark = pytest.mark.usefixtures("one_thread")

FLOATS = (DataType.FP32, DataType.FP16, DataType.BF16)


@cache
def model_gradients(preset: str, workers: int) -> list[NDArray[np.float32]]:
    """All of a step's gradients of each worker, one after the other."""
    reference = Reference(TrainingOptions(workers=workers, preset=preset, batch=1, network="memory"), load_corpus())
    flat = []
    for worker in range(workers):
        _, parts = reference.gradients(worker, 0)
        flat.append(torch.cat([part.reshape(-1) for part in parts]).numpy())
    return flat


def play(parts: list[NDArray[np.float32]], rng: random.Random, *, software: tuple[str, ...] = ()) -> None:
    exponent = math.frexp(max(float(np.abs(part).max()) for part in parts))[1]
    with Machine.star(len(parts), software=software, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu([f"w{i}" for i in range(len(parts))], root="opt", slots=256)
        for dtype in FLOATS:
            total, _ = gradients(machine, job, [as_type(p, dtype) for p in parts], dtype, exponent=exponent)
            parameters(machine, job, total.tobytes())


@pytest.mark.parametrize("workers", [2, 4])
def test_gradients_of_a_small_model(workers: int, rng: random.Random) -> None:
    parts = model_gradients("tiny", workers)
    begin = rng.randrange(parts[0].size - 8000)
    play([part[begin : begin + 8000] for part in parts], rng)


def test_the_software_endpoint_gives_the_same_bits(rng: random.Random) -> None:
    parts = [part[:5000] for part in model_gradients("tiny", 2)]
    play(parts, rng, software=("w0", "w1", "opt"))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [8, 16])
def test_all_gradients_of_a_small_model(workers: int, rng: random.Random) -> None:
    play(model_gradients("tiny", workers), rng)


@pytest.mark.slow
def test_all_gradients_of_the_demos_model(rng: random.Random) -> None:
    parts = model_gradients("demo", 2)
    exponent = math.frexp(max(float(np.abs(part).max()) for part in parts))[1]
    with Machine.star(2, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["w0", "w1"], root="opt", slots=256)
        step = 1 << 17  # elements of a message
        for begin in range(0, parts[0].size, step):
            here = [part[begin : begin + step] for part in parts]
            gradients(machine, job, here, DataType.FP32, exponent=exponent)
