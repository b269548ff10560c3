"""The accuracy in docs/explanation/number-formats.md is that of the shipped rule: the bench's sums are the switch's."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from collective_lab import PATIENCE, communicators, together

from bench.format_schemes import block
from catchment.host.collectives import Communicator
from catchment.sim.lab.local_switch import GROUPS, LANES, SLOTS, rings
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[Communicator]]:
    """Communicators on the switch that torchrun's ranks have."""
    lab = ShmLab(NAMES, lanes=LANES, slots=GROUPS * SLOTS, mtu=9000, options=rings(LANES, SLOTS))
    with lab, communicators(lab, lab.allreduce(NAMES, slots=SLOTS)) as made:
        yield made


@pytest.mark.parametrize("elements", [200, 1000, 5 * LANES, 32 * LANES, 33 * LANES + 7, (SLOTS + 20) * LANES])
def test_the_benchs_sums_are_the_switchs(ranks: list[Communicator], elements: int, seed: int) -> None:
    numbers = np.random.default_rng((seed, elements))
    spread = 2.0 ** numbers.uniform(-30, 10, elements)  # neighbours of all magnitudes, as gradients are
    parts = [(numbers.standard_normal(elements) * spread).astype(np.float32) for _ in NAMES]

    def body(rank: Communicator) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        array = parts[rank.rank].copy()
        rank.all_reduce(array).wait(PATIENCE)
        return array

    published = block(DataType.FP32, LANES).add(parts)
    assert published is not None
    for got in together(ranks, body):
        assert np.array_equal(got, published.astype(np.float32))
