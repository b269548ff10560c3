"""Jobs on p4sgd.p4 with every worker on a shared-memory port of a real switch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from catchment.controlplane.jobs import JobError, JobPlan
from catchment.controlplane.state.faults import clear_loss, set_loss
from catchment.host import EndpointError
from catchment.sim.golden import formats
from catchment.sim.lab.shm_lab import P4SGD, ShmLab
from catchment.wire.generated.constants import DataType

WORKERS = ("w0", "w1", "w2", "w3")
SIZES = (8, 1, 9, 7, 64, 1000, *range(1, 25))


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(WORKERS, program=P4SGD, lanes=8, slots=64) as lab:
        yield lab


def reduce_all(lab: ShmLab, job: JobPlan, arrays: list[list[NDArray[Any]]], exponent: int | None) -> None:
    """Every worker in a thread; its arrays one after another."""

    def work(wid: int) -> None:
        with lab.reducer(job, job.workers[wid], timeout=120.0, spin=0.0) as reducer:
            for array in arrays[wid]:
                reducer.all_reduce(array, exponent)

    with ThreadPoolExecutor(len(job.workers)) as pool:
        for done in [pool.submit(work, wid) for wid in range(len(job.workers))]:
            done.result()


@pytest.mark.parametrize("loss", [0.0, 0.02])
@pytest.mark.parametrize("dtype", [DataType.INT32, DataType.FP32])
def test_sums_are_exact(lab: ShmLab, dtype: DataType, loss: float, rng: random.Random) -> None:
    numbers = np.random.default_rng(rng.getrandbits(64))
    exponent = 3
    arrays: list[list[NDArray[Any]]] = [
        [
            numbers.integers(-(1 << 31), 1 << 31, size).astype(np.int32)
            if dtype == DataType.INT32
            else numbers.standard_normal(size).astype(np.float32)
            for size in SIZES
        ]
        for _ in WORKERS
    ]
    wanted = []
    for own in zip(*arrays, strict=True):
        lanes = [formats.quantize(array, dtype, exponent, len(WORKERS)).lanes for array in own]
        wanted.append(formats.dequantize(formats.add_lanes(lanes), dtype, exponent, len(WORKERS)))
    job = lab.slots(WORKERS, slots=8)
    try:
        if loss:
            set_loss(lab.client, [1, 2, 3, 4], loss)
        reduce_all(lab, job, arrays, None if dtype == DataType.INT32 else exponent)
    finally:
        clear_loss(lab.client)
    for own_sums in arrays:
        assert all(got.tobytes() == want.tobytes() for got, want in zip(own_sums, wanted, strict=True))


def test_a_missing_worker_ends_the_wait(lab: ShmLab) -> None:
    job = lab.slots(WORKERS[:2], slots=4)
    with lab.reducer(job, "w0", timeout=1.0) as reducer, pytest.raises(EndpointError) as caught:
        reducer.all_reduce(np.ones(8, np.int32))
    assert caught.value.kind in ("stalled", "unreachable")


def test_only_jobs_of_the_program(lab: ShmLab) -> None:
    with pytest.raises(JobError, match=r"runs p4sgd\.p4"):
        lab.allreduce(WORKERS[:2], slots=4)
