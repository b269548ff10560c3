"""Packed lanes through a real switch with luwu.p4, deployed by the control plane."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from catchment.controlplane.jobs import JobError
from catchment.controlplane.state.faults import clear_loss, set_loss
from catchment.host import Endpoint, EndpointError, Request, Stream
from catchment.sim.golden import block_messages, packed_lanes, scaled_sums
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType, DropReason

PATIENCE = 240.0
HOSTS = ("w0", "w1", "w2", "opt")
LANES = 64


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(HOSTS, lanes=LANES, slots=1024) as lab:
        yield lab


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def dropped(lab: ShmLab) -> int:
    return lab.client.counter("drops", DropReason.NOT_PACKED)[0].packets


def finish(*requests: Request) -> None:
    for request in requests:
        request.wait(PATIENCE)


@pytest.mark.parametrize("loss", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [DataType.BF16, DataType.FP16, DataType.FP32])
def test_all_reduce_with_an_exponent_for_each_vector(
    loss: float, dtype: DataType, lab: ShmLab, numbers: np.random.Generator
) -> None:
    """More vectors than slots, magnitudes that differ from vector to vector, a last vector with an odd number."""
    peers, slots, count = 3, 16, 2 * LANES
    elements = 40 * count - 5
    scale = np.repeat(2.0 ** numbers.integers(-14, 14, 40), count)[:elements]
    parts = [scaled_sums.to_wire((numbers.standard_normal(elements) * scale).astype(np.float32), dtype)
             for _ in range(peers)]  # fmt: skip
    job = lab.allreduce(HOSTS[:peers], slots=slots, packed=True)
    try:
        if loss:
            set_loss(lab.client, [1, 2, 3], loss)
        with lab.endpoint(job, "w0") as w0, lab.endpoint(job, "w1") as w1, lab.endpoint(job, "w2") as w2:
            results = [np.zeros_like(part) for part in parts]
            both = list(zip((w0, w1, w2), parts, results, strict=True))
            finish(*(peer.push(part, block=True) for peer, part, _ in both),
                   *(peer.pull(into, block=True) for peer, _, into in both))  # fmt: skip
    finally:
        clear_loss(lab.client)
        lab.remove(job)
    for index, exponent in enumerate(block_messages.agreed(parts, dtype, count)):
        these = slice(index * count, (index + 1) * count)
        quantized = [packed_lanes.quantize(part[these], dtype, exponent, peers) for part in parts]
        assert sum(one.saturated for one in quantized) == 0
        total = packed_lanes.add_lanes([one.lanes for one in quantized])
        want = packed_lanes.dequantize(total, dtype, exponent, peers, len(parts[0][these]))
        for into in results:
            np.testing.assert_array_equal(into[these], want)


def test_a_stream_without_the_entry_has_no_packed_lanes(lab: ShmLab) -> None:
    """A worker that packs where the control plane has not said so: its vectors are dropped and counted."""
    job = lab.luwu(HOSTS[:1], root="opt", slots=16)
    before = dropped(lab)
    description = job.describe("w0")
    stream = Stream(**{**description["gradients"], "packed": True})
    where = {"local": tuple(description["local"]), "switch": tuple(description["switch"])}
    try:
        with Endpoint.worker(gradients=stream, wid=0, port=f"shm:{lab.path('w0')}", timeout=0.5, **where) as worker:
            request = worker.push(np.ones(10, np.float32), 1)
            with pytest.raises(EndpointError) as caught:
                request.wait(PATIENCE)
        assert caught.value.kind == "unreachable"
        assert dropped(lab) > before
    finally:
        lab.remove(job)


def test_jobs_of_slots_are_refused(lab: ShmLab) -> None:
    with pytest.raises(JobError, match="jobs of kind slots have 32-bit lanes; packed lanes are for: allreduce, luwu"):
        lab.slots(HOSTS[:2], packed=True)
