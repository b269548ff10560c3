"""Clocks of a training as the hardware takes them: one Verilated worker whose sums come back after fixed hops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.rtl.harness.glm_worker import Build, VerilatedWorker
from catchment.sim.cosim.glm.network import GlmNetwork, SlotJob, model_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.golden.glm_cycles import CLOCK_HZ, PAPER_NETWORK, Setting, Workload
from catchment.sim.world.star import Hops
from catchment.wire.generated.glm_numbers import BANKS, CHUNK, PLANES

PAPER_HOP = round(PAPER_NETWORK.seconds(BANKS) * CLOCK_HZ / 2)
"""Clocks between worker and switch so that an all-reduce takes what the paper's does."""
_MEMORY_LATENCY = 60
_MINI_BATCHES = 3
_LEAST_CLOCKS = 1500
"""The least clocks of a mini-batch: longer than 128 rounds of two all-reduces could hide."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """What was seen.

    Args:
        ideal: chunks of an engine times bits.
        micro_batch: between the sums of micro-batches in the middle of a mini-batch.
        all_reduce: from a frame's last beat at the MAC to its sum's.
        constant: what a mini-batch takes beyond its micro-batches and one all-reduce.
    """

    ideal: int
    micro_batch: float
    all_reduce: int
    constant: int


def of_paper(workload: Workload, setting: Setting) -> Clocks:
    """Measure a worker's share of a paper's workload in hardware of full size."""
    chunks = setting.shares(workload).engine_chunks
    return measure(chunks, setting.bits, Build(engines=setting.engines), PAPER_HOP)


def measure(chunks: int, bits: int, shape: Build, hop: int, seed: int = 1) -> Clocks:
    """Train on random samples for three mini-batches.

    Args:
        chunks: of each engine.
        bits: planes that are read.
        shape: of the hardware.
        hop: clocks from the worker to the switch, and back.
        seed: of the samples.
    """
    ideal = chunks * bits
    batch = max(4, -(-_LEAST_CLOCKS // ideal))
    rng = np.random.default_rng(seed)
    count = _MINI_BATCHES * batch
    words = rng.integers(0, 1 << 64, (shape.engines, count, chunks, PLANES, BANKS), np.uint64)
    labels = np.where(rng.random((count, BANKS)) < 0.5, -1, 1).astype(np.int64)
    numbers = Numbers(bits, batch * BANKS)
    job = SlotJob(1, slots=shape.slots, rto=100 * hop)
    with VerilatedWorker(shape, words, labels, seed=seed) as worker:
        worker.pace(_MEMORY_LATENCY)
        worker.join(job.rounds(0))
        worker.weights = np.zeros((shape.engines, chunks * CHUNK), np.int64)
        network = GlmNetwork([worker], model_switch(job), seed=seed, hops=Hops(hop=hop), step=1)
        worker.start(hardware_training(numbers, Step.of(0.01, numbers), Loss.LOGISTIC))
        received = 0
        while worker.busy:
            network.advance()
            received = received or worker.last_received
        sums, sent = worker.events("sums"), worker.events("sent")
    all_reduce = received - sent[0]
    middle, last = batch + batch // 2, 2 * batch - 1
    return Clocks(
        ideal,
        (sums[last] - sums[middle]) / (last - middle),
        all_reduce,
        sums[2 * batch] - sums[batch] - batch * ideal - all_reduce,
    )
