"""A random training and both ways to run it: the golden model, and Verilated workers around a switch."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.host.glm.shares import Shares
from catchment.rtl.harness.glm_worker import Build, Counts, VerilatedWorker
from catchment.sim.cosim.glm.network import GlmNetwork, SlotJob, embedded_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.golden import glm
from catchment.sim.world.star import Hops, Inject
from catchment.wire.generated.glm_numbers import WEIGHT_LIMIT

SMALL = Build(engines=1, model_rows=64, replay_words=256)
"""The build of most tests, and of small trainings by the command, so that they share a build: 1024 weights."""
SLOTS = 8
"""Rounds in flight."""
CALM = Hops()


@dataclass
class Case:
    """Samples and numbers; `spread` is the weights' size at the start."""

    rng: random.Random
    bits: int
    loss: Loss = Loss.LOGISTIC
    workers: int = 1
    engines: int = 1
    samples: int = 40
    features: int = 150
    batch: int = 16
    rate: float = 0.05
    spread: int = 1 << 18
    epochs: int = 1

    def __post_init__(self) -> None:
        numpy = np.random.default_rng(self.rng.getrandbits(64))
        codes = numpy.integers(0, 1 << 16, (self.samples, self.features)).astype(np.uint16)
        signs = np.where(numpy.random(self.samples) < 0.5, -1, 1)
        self.labels = signs * numpy.integers(0, 1 << 18, self.samples) if self.loss == Loss.SQUARES else signs
        self.numbers = Numbers(self.bits, self.batch)
        self.step = Step.of(self.rate, self.numbers)
        self.shares = Shares(self.features, self.workers, self.engines)
        self.golden = glm.workers_of(codes, self.shares, self.numbers, self.loss)
        for worker in self.golden:
            low, high = max(-self.spread, -WEIGHT_LIMIT), min(self.spread, WEIGHT_LIMIT)
            worker.weights = numpy.integers(low, high + 1, worker.weights.shape)
        self.start = [worker.weights.copy() for worker in self.golden]
        self.rows = glm.padded_labels(self.labels)

    def expected(self) -> list[NDArray[np.int64]]:
        """Each worker's weights after the epochs."""
        for _ in range(self.epochs):
            glm.train_epoch(self.golden, self.labels, self.step)
        return [worker.weights for worker in self.golden]

    def in_hardware(
        self, shape: Build = SMALL, *, hops: Hops = CALM, base_seq: int = 0, latency: int = 20, stall: int = 0,
        tx_stall: int = 0, switch: Callable[[SlotJob], Inject] = embedded_switch,
    ) -> tuple[list[NDArray[np.int64]], list[Counts], GlmNetwork]:  # fmt: skip
        """The same, what the workers counted, and the network."""
        job = SlotJob(self.workers, slots=SLOTS, base_seq=base_seq, rto=8 * hops.hop + 400)
        with ExitStack() as exits:
            workers = []
            for wid, golden in enumerate(self.golden):
                worker = VerilatedWorker(shape, golden.words, self.rows, seed=self.rng.getrandbits(32))
                workers.append(exits.enter_context(worker))
                worker.pace(latency, stall, tx_stall)
                worker.join(job.rounds(wid))
                worker.weights = self.start[wid]
            network = GlmNetwork(workers, switch(job), seed=self.rng.getrandbits(64), hops=hops)
            training = hardware_training(self.numbers, self.step, self.loss, self.epochs)
            for worker in workers:
                worker.start(training)
            network.settle()
            return [worker.weights for worker in workers], [worker.counts() for worker in workers], network


def assert_equal(case: Case, found: list[NDArray[np.int64]]) -> None:
    """Bit for bit."""
    for wid, (weights, expected) in enumerate(zip(found, case.expected(), strict=True)):
        wrong = np.argwhere(weights != expected)
        assert not len(wrong), f"worker {wid}: {len(wrong)} of {weights.size} weights, first at {wrong[0]}"
    assert any((worker.weights != start).any() for worker, start in zip(case.golden, case.start, strict=True))
