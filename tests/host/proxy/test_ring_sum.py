"""The software twin of the sync core against the golden model, in rings of threads."""

from __future__ import annotations

import queue
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from catchment.host.proxy.ring import Lanes, ring_sum
from catchment.sim.golden.sync_core import ring_sums


class _Link:
    def __init__(self, onward: queue.Queue[Any], before: queue.Queue[Any]) -> None:
        self._onward, self._before = onward, before

    def send(self, segment: Lanes) -> None:
        self._onward.put(segment.copy())

    def receive(self, segment: Lanes) -> None:
        segment[:] = self._before.get(timeout=60)


def run_ring(arrays: Lanes, entries: int) -> Lanes:
    devices = len(arrays)
    links: list[queue.Queue[Any]] = [queue.Queue() for _ in range(devices)]
    found = arrays.copy()
    with ThreadPoolExecutor(devices) as threads:
        done = [
            threads.submit(
                ring_sum, found[i], i, devices, _Link(links[i], links[(i - 1) % devices]), entries=entries
            )
            for i in range(devices)
        ]  # fmt: skip
        for each in done:
            each.result(120)
    return found


@pytest.mark.parametrize("devices", [1, 2, 3, 4, 7, 8, 16])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_rings_sum_as_the_golden_model_does(devices: int, dtype: type, rng: random.Random) -> None:
    """Wrapping integers and fp32 in the ring's order, denormals among them; any length, several chunks."""
    for entries in (1, rng.randint(2, 5)):
        elements = rng.choice([1, rng.randint(2, 60), rng.randint(61, 3000 // devices + 61)])
        numbers = np.random.default_rng(rng.getrandbits(32))
        words = numbers.integers(-(2**31), 2**31, (devices, elements), np.int32)
        if dtype is np.int32:
            values: Lanes = words
        else:  # magnitudes so far apart that the order of the sums is in their bits
            values = np.ldexp(numbers.normal(size=words.shape), numbers.integers(-149, 20, words.shape)).astype(dtype)
        expected = ring_sums(values, entries)
        for device, found in enumerate(run_ring(values, entries)):
            wrong = np.flatnonzero(found.view(np.int32) != expected.view(np.int32))
            assert not len(wrong), f"device {device} of {devices}, {elements} elements: {wrong[:5]}"


def test_the_order_of_a_rings_fp32_sum_is_in_its_bits() -> None:
    """Segment s begins at device s: a sum in the devices' own order would differ."""
    values = np.array([[1.0] * 32, [2.0**24] * 32, [-(2.0**24)] * 32], np.float32)
    expected = ring_sums(values, 1)
    assert set(expected.tolist()) == {0.0, 1.0}
    assert (run_ring(values, 1) == expected).all()
