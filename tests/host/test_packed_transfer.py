"""Packed lanes between real endpoints: sums as defined whatever the network does, half the bytes, and refusals."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from cluster import PATIENCE, luwu, ring
from numpy.typing import NDArray

from catchment.host import AllReducer, Endpoint, EndpointError, Request, Stream
from catchment.sim.golden import block_messages, formats, packed_lanes, scaled_sums
from catchment.wire.generated.constants import DataType, Flag

NEAR_WRAP = (1 << 32) - 5
CLEAN: dict[str, float] = {}
ROUGH = {"loss": 0.02, "duplicate": 0.02, "reorder": 0.05}
LENGTHS = (1, 2, 127, 128, 129, 3001)


@pytest.fixture
def numbers(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.getrandbits(64))


def finish(*requests: Request) -> None:
    for request in requests:
        request.wait(PATIENCE)


def gradients(numbers: np.random.Generator, length: int, dtype: DataType) -> NDArray[Any]:
    """Numbers of many magnitudes below 1, and now and then one beyond."""
    values = numbers.standard_normal(length) * 2.0 ** numbers.integers(-15, 0, length)
    return scaled_sums.to_wire(values.astype(np.float32), dtype)


@pytest.mark.parametrize("faults", [CLEAN, ROUGH], ids=["clean", "rough"])
@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.FP16, DataType.BF16])
def test_all_reduce_is_as_defined(
    dtype: DataType, faults: dict[str, float], numbers: np.random.Generator, seed: int
) -> None:
    """Odd lengths, the wrap of seq, different numbers on every peer."""
    peers, exponent = 3, 0
    parts = [[gradients(numbers, length, dtype) for length in LENGTHS] for _ in range(peers)]
    stream = Stream(gen=9, workers=peers, base_seq=NEAR_WRAP, packed=True)
    with ring(peers, stream=stream, seed=seed, **faults) as job:
        results = [[np.zeros_like(part) for part in own] for own in parts]
        requests = []
        for peer, own, into in zip(job.peers, parts, results, strict=True):
            for part, result in zip(own, into, strict=True):
                requests += [peer.push(part, exponent), peer.pull(result)]
        finish(*requests)
    for index, length in enumerate(LENGTHS):
        quantized = [packed_lanes.quantize(own[index], dtype, exponent, peers) for own in parts]
        total = packed_lanes.add_lanes([one.lanes for one in quantized])
        want = packed_lanes.dequantize(total, dtype, exponent, peers, length)
        for into in results:
            np.testing.assert_array_equal(into[index], want)


@pytest.mark.parametrize("faults", [CLEAN, ROUGH], ids=["clean", "rough"])
def test_the_root_learns_what_delayed_scaling_needs(
    faults: dict[str, float], numbers: np.random.Generator, seed: int
) -> None:
    workers, exponent, length = 4, -1, 1001
    arrays = [gradients(numbers, length, DataType.BF16) for _ in range(workers)]
    arrays[1][3] = 0xFF80  # -infinity
    quantized = [packed_lanes.quantize(array, DataType.BF16, exponent, workers) for array in arrays]
    total = packed_lanes.add_lanes([one.lanes for one in quantized])
    with luwu(workers, gradients=Stream(gen=7, workers=workers, packed=True), seed=seed, **faults) as job:
        result, raw = np.zeros(length, np.float32), np.zeros(length, np.int32)
        pulls = [job.root.pull(result), job.root.pull(raw)]
        each = list(zip(job.workers, arrays, strict=True))
        pushes = [worker.push(array, exponent) for _ in range(2) for worker, array in each]
        finish(*pulls, *pushes)
    np.testing.assert_array_equal(result, packed_lanes.dequantize(total, DataType.FP32, exponent, workers, length))
    halves = packed_lanes.from_lanes(total)[:length].astype(np.int32)
    np.testing.assert_array_equal(raw, halves)
    assert [push.saturated for push in pushes[:workers]] == [one.saturated for one in quantized]
    assert [push.nonfinite for push in pushes[:workers]] == [0, 1, 0, 0]
    assert pulls[0].flags & Flag.SAT
    assert pulls[0].max_raw == int(np.abs(halves).max())
    assert pulls[0].max_abs == pulls[0].max_raw * 2.0 ** (exponent + 2 - 15)


def test_gradients_take_half_of_the_bytes(numbers: np.random.Generator) -> None:
    """Counted at the endpoints: what workers send, and what peers send and get."""
    parts = [gradients(numbers, 64 * 200, DataType.BF16) for _ in range(2)]

    def moved(*, packed: bool) -> tuple[int, int]:
        with luwu(2, gradients=Stream(gen=7, workers=2, packed=packed)) as job:
            total = np.zeros(parts[0].size, np.float32)
            finish(job.root.pull(total), *(w.push(part, 0) for w, part in zip(job.workers, parts, strict=True)))
            data = [w.stats() for w in job.workers]
        frames = sum(s["frames_sent"] - s["heartbeats_sent"] - s["retransmissions"] for s in data)
        return frames, frames * (32 + 4 * 64)

    (whole, whole_bytes), (half, half_bytes) = moved(packed=False), moved(packed=True)
    assert (whole, half) == (2 * 200, 2 * 100)
    assert 2 * half_bytes == whole_bytes


def test_a_root_with_other_lanes_says_so() -> None:
    with luwu(1, gradients=Stream(gen=7, workers=1, packed=True), absent=(0,)) as job:
        common: dict[str, Any] = {"wid": 0, "local": ("127.0.0.1", 0), "switch": job.relay.address}
        with Endpoint.worker(gradients=Stream(gen=7, workers=1), **common) as worker:
            job.relay._jobs[7].members[worker.local] = 0
            pull = job.root.pull(np.zeros(10, np.float32))
            worker.push(np.ones(10, np.float32), 1)
            with pytest.raises(EndpointError, match="a sum of 32-bit lanes came; this stream's are packed") as caught:
                pull.wait(PATIENCE)
    assert caught.value.kind == "mismatch"
    assert "`packed`" in caught.value.hint


@pytest.mark.parametrize("odd", [True, False], ids=["one packs", "one does not"])
def test_one_worker_with_other_lanes_is_noticed_by_all(odd: bool, rng: random.Random) -> None:
    """Whoever it is, and whichever vector comes last: a sum of both kinds of lanes is nobody's result."""
    peers = 3
    other = rng.randrange(peers)
    with (
        ring(peers, stream=Stream(gen=9, workers=peers, packed=not odd), absent=(other,)) as job,
        Endpoint.peer(
            stream=Stream(gen=9, workers=peers, packed=odd), wid=other, local=("127.0.0.1", 0), switch=job.relay.address
        ) as strange,
    ):
        job.relay._jobs[9].members[strange.local] = other
        members = [*job.peers, strange]
        pulls = [member.pull(np.zeros(5, np.float32)) for member in members]
        for own, member in enumerate(rng.sample(members, peers), start=1):
            member.push(np.arange(5, dtype=np.float32) / (8 * own), 3)
        for pull in pulls:
            with pytest.raises(EndpointError, match="some workers' vectors have packed lanes") as caught:
                pull.wait(PATIENCE)
            assert caught.value.kind == "mismatch"


def test_integers_are_refused() -> None:
    with luwu(1, gradients=Stream(gen=7, workers=1, packed=True)) as job:
        with pytest.raises(EndpointError, match="a push of int32 in packed lanes") as caught:
            job.workers[0].push(np.ones(3, np.int32))
        assert caught.value.kind == "argument"
        assert job.root.push(b"parameters") is not None


def test_bad_settings_are_refused() -> None:
    with pytest.raises(EndpointError, match=r"Stream\.packed is 1"):
        Stream(gen=1, workers=1, packed=1)  # type: ignore[arg-type]
    with pytest.raises(EndpointError, match=r"packed lanes in a job on p4sgd\.p4"):
        AllReducer(stream=Stream(gen=1, workers=1, packed=True), wid=0, local=("127.0.0.1", 0), switch=("127.0.0.1", 9))


def test_scaled_numbers_differ_from_the_exact_sum_by_their_steps(numbers: np.random.Generator) -> None:
    """bf16 gradients with the exponent that they need: within half a step of each worker and bf16's own rounding."""
    workers = 4
    parts = [numbers.standard_normal(4096).astype(np.float32) for _ in range(workers)]
    words = [formats.bf16_words(part) for part in parts]
    exponent = block_messages.agreed(words, DataType.BF16, 4096)[0]
    lanes = [packed_lanes.quantize(word, DataType.BF16, exponent, workers).lanes for word in words]
    total = packed_lanes.dequantize(packed_lanes.add_lanes(lanes), DataType.FP32, exponent, workers, 4096)
    exact = np.sum([formats.bf16_values(word).astype(np.float64) for word in words], axis=0)
    assert np.abs(total - exact).max() <= workers / 2 * 2.0 ** (exponent + 2 - 15) * (1 + 1e-9)
