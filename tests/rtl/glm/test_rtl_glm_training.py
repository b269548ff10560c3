"""Trainings on Verilated workers around the embedded switch: the golden model's weights, bit for bit."""

from __future__ import annotations

import random

import pytest
from glm_case import SMALL, Case, assert_equal

from catchment.host.glm.numbers import Loss
from catchment.rtl.harness.glm_worker import Build
from catchment.sim.cosim.glm.network import model_switch
from catchment.sim.world.star import Hops


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", list(Loss))
def test_one_worker_of_one_engine(loss: Loss, rng: random.Random) -> None:
    case = Case(rng, bits=rng.randrange(1, 17), loss=loss, epochs=2)
    weights, (counts,), _ = case.in_hardware()
    assert_equal(case, weights)
    assert counts.begun == counts.sums == counts.confirmed == 2 * len(case.rows) and not counts.refused


@pytest.mark.parametrize("bits", [1, 3, 4, 16])
def test_precisions(bits: int, rng: random.Random) -> None:
    case = Case(rng, bits, features=rng.choice([1, 64, 65, 700]))
    assert_equal(case, case.in_hardware(latency=rng.randrange(1, 200), stall=rng.choice([0, 60]))[0])


def test_numbers_that_are_cut(rng: random.Random) -> None:
    """Weights near the ends of int32 and a step that carries them beyond; activations, too."""
    case = Case(rng, bits=8, loss=Loss.SQUARES, spread=1 << 31, rate=100, samples=16, batch=8)
    weights, (counts,), _ = case.in_hardware()
    assert_equal(case, weights)
    assert counts.saturated == case.golden[0].saturated > 0
    assert counts.peer_saturated


def test_workers_on_faulty_lines(rng: random.Random) -> None:
    """Frames are lost, doubled and overtaken; rounds pass the end of 32 bits."""
    hops = Hops.with_stragglers(hop=50, loss=0.2, duplicate=0.2, tail=rng.choice([0, 10]))
    case = Case(rng, bits=4, workers=3, features=500, batch=32, samples=128)
    weights, counts, network = case.in_hardware(hops=hops, base_seq=2**32 - 5, tx_stall=40, switch=model_switch)
    assert_equal(case, weights)
    assert network.lost and any(c.repeated for c in counts) and any(c.unasked for c in counts)
    assert all(c.begun == c.sums == c.confirmed == len(case.rows) for c in counts)


@pytest.mark.slow
@pytest.mark.parametrize("engines", [2, 3])
def test_engines(engines: int, rng: random.Random) -> None:
    shape = Build(engines, SMALL.model_rows, SMALL.replay_words, buffer_words=32, slots=16)
    for loss in Loss:
        case = Case(rng, rng.randrange(1, 17), loss, workers=2, engines=engines, features=rng.randrange(100, 900))
        assert_equal(case, case.in_hardware(shape, stall=20)[0])


@pytest.mark.slow
@pytest.mark.parametrize("bits", range(1, 17))
def test_every_precision(bits: int, rng: random.Random) -> None:
    for loss in Loss:
        case = Case(
            rng, bits, loss, samples=rng.randrange(90) + 1, features=rng.randrange(1, 999),
            batch=8 * rng.randrange(1, 9),
            rate=10 ** rng.uniform(-4, -0.1), epochs=rng.randrange(1, 4), spread=1 << rng.randrange(32),
        )  # fmt: skip
        found = case.in_hardware(latency=rng.randrange(1, 300), stall=rng.randrange(100), tx_stall=rng.randrange(100))
        assert_equal(case, found[0])
