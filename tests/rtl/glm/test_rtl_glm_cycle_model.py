"""The cycle model (sim/golden/glm_cycles.py) tells the hardware's clocks within 2%."""

from __future__ import annotations

import random
from contextlib import ExitStack

import pytest
from glm_case import SMALL, Case

from catchment.rtl.harness.glm_worker import VerilatedWorker
from catchment.sim.cosim.glm.network import GlmNetwork, SlotJob, model_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.golden import glm_cycles as cycles
from catchment.sim.world.star import Hops

PIPELINE = cycles.Pipeline(replay_words=SMALL.replay_words)


def _measured(case: Case, hop: int) -> tuple[int, int]:
    """Clocks of an epoch of a lone worker, and of its first all-reduce: from frame out to answer in."""
    job = SlotJob(1, slots=SMALL.slots, rto=100_000)
    with ExitStack() as exits:
        worker = exits.enter_context(VerilatedWorker(SMALL, case.golden[0].words, case.rows))
        worker.pace(latency=10)
        worker.join(job.rounds(0))
        worker.weights = case.start[0]
        network = GlmNetwork([worker], model_switch(job), seed=1, hops=Hops(hop=hop), step=1)
        worker.start(hardware_training(case.numbers, case.step, case.loss))
        received = 0
        while worker.busy:
            network.advance()
            received = received or worker.last_received
        return worker.counts().clocks, received - worker.events("sent")[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("bits", "chunks", "sizes", "hop"),
    [
        (4, 7, (64, 32), 60),
        (2, 3, (80, 40), 40),
        pytest.param(8, 4, (80, 40), 10, marks=pytest.mark.slow),
        pytest.param(4, 9, (64, 64), 100, marks=pytest.mark.slow),
    ],
)
def test_an_epoch_takes_what_the_model_says(
    bits: int, chunks: int, sizes: tuple[int, int], hop: int, rng: random.Random
) -> None:
    """Many micro-batches and few, more in flight than the replay memory holds, fewer planes than rows."""
    samples, batch = sizes
    clocks, all_reduce = _measured(Case(rng, bits, features=64 * chunks, samples=samples, batch=batch), hop)
    batches = cycles.mini_batch_sizes(samples, batch)
    assert cycles.mini_batches(batches, chunks, bits, all_reduce, PIPELINE)[-1] == pytest.approx(clocks, rel=0.02)
