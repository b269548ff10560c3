"""What the hardware takes in clocks: planes, all-reduce, the way from one mini-batch to the next."""

from __future__ import annotations

import random
from contextlib import ExitStack
from itertools import pairwise

import pytest
from glm_case import SLOTS, SMALL, Case

from catchment.rtl.harness.glm_worker import VerilatedWorker
from catchment.sim.cosim.glm.clocks import measure, of_paper
from catchment.sim.cosim.glm.network import GlmNetwork, SlotJob, model_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.golden import glm_cycles
from catchment.sim.world.star import Hops

NIC_CLOCKS = 40
"""The issue's limit for the NIC's share of an all-reduce."""
CONSTANT = 52
"""A mini-batch beyond its micro-batches, an all-reduce and a chunk's planes."""
QUEUED = 2
"""Clocks from the last bank's sum to `sums`: through a queue."""


def events_of(case: Case, hop: int = 60) -> dict[str, list[int]]:
    """Clocks of a lone worker's events over one epoch, memory fast enough; `received`: of each answer's last beat."""
    job = SlotJob(1, slots=SLOTS, rto=100_000)
    with ExitStack() as exits:
        worker = exits.enter_context(VerilatedWorker(SMALL, case.golden[0].words, case.rows))
        worker.pace(latency=10)
        worker.join(job.rounds(0))
        worker.weights = case.start[0]
        network = GlmNetwork([worker], model_switch(job), seed=1, hops=Hops(hop=hop), step=1)
        worker.start(hardware_training(case.numbers, case.step, case.loss))
        received = []
        while worker.busy:
            network.advance()
            if worker.last_received and worker.last_received not in received:
                received.append(worker.last_received)
        return {"received": received, **{name: worker.events(name) for name in ("sums", "sent", "full", "scales")}}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("bits", [1, 2, 4, 7])
def test_a_micro_batch_takes_its_planes(bits: int, rng: random.Random) -> None:
    """Sums come every chunks * bits clocks where no word or credit has to be waited for: nothing is added between them.

    But frames of two beats go out, so that a micro-batch of fewer clocks waits for the MAC.
    """
    chunks = rng.randrange(4, 12)
    case = Case(rng, bits, features=64 * chunks, samples=48, batch=48)
    seen = events_of(case)
    assert [after - before for before, after in pairwise(seen["sums"])] == [chunks * bits] * 5


def test_the_nic_adds_little_to_an_all_reduce(rng: random.Random) -> None:
    seen = events_of(Case(rng, 4, samples=8, batch=8))
    out = seen["sent"][0] - seen["sums"][0] + QUEUED
    back = seen["full"][0] - seen["received"][0]
    assert (out, back) == (glm_cycles.NIC_OUT_CLOCKS, glm_cycles.NIC_BACK_CLOCKS)
    assert out + back <= NIC_CLOCKS


def test_the_next_mini_batch_begins_a_constant_after_the_sums(rng: random.Random) -> None:
    """Its first plane is issued when the first chunk is written: not one clock more for more chunks."""
    ways = set()
    for chunks in (1, 3, 7):
        case = Case(rng, 4, features=64 * chunks, samples=16, batch=8)
        seen = events_of(case)
        first_plane = seen["sums"][1] - (chunks * 4 - 1) - 14  # `sums` is 14 clocks after the last plane
        ways.add(first_plane - seen["full"][0])
    assert ways == {30}


@pytest.mark.parametrize("micro_batches", [1, 2, 5])
def test_the_cycle_model_says_what_the_hardware_takes(micro_batches: int, rng: random.Random) -> None:
    """The clocks from the end of the first mini-batch to that of the last agree within 2 %, and in fact exactly."""
    chunks, bits, batch = rng.randrange(1, 8), rng.choice([2, 4, 6]), 8 * micro_batches
    seen = events_of(Case(rng, bits, features=64 * chunks, samples=5 * batch, batch=batch))
    all_reduce = seen["received"][0] - seen["sent"][0]
    done = glm_cycles.mini_batches([micro_batches] * 5, chunks, bits, all_reduce, glm_cycles.Pipeline(window=SLOTS))
    measured = seen["full"][-1] - seen["full"][micro_batches - 1]
    assert abs(measured / (done[-1] - done[0]) - 1) <= 0.02


@pytest.mark.parametrize(("chunks", "bits"), [(2, 4), (5, 1), (9, 2), (6, 3)])
def test_micro_batches_take_the_ideal_and_mini_batches_a_constant(chunks: int, bits: int, seed: int) -> None:
    """Gisette's share among them; of fewer planes than rows, the update adds what its rows take."""
    seen = measure(chunks, bits, SMALL, hop=40, seed=seed)
    assert (seen.ideal, seen.micro_batch) == (chunks * bits, chunks * bits)
    assert seen.constant == CONSTANT + bits + (chunks - 1) * (max(bits, 4) - bits)


@pytest.mark.slow
@pytest.mark.parametrize("workload", glm_cycles.PAPER_WORKLOADS, ids=lambda workload: workload.name)
def test_the_paper_s_workloads_take_the_ideal(workload: glm_cycles.Workload) -> None:
    """Eight engines of full size, each with its share at 8 workers."""
    seen = of_paper(workload, glm_cycles.Setting())
    assert seen.ideal == -(-workload.features // 4096) * 4
    assert (seen.micro_batch, seen.constant) == (seen.ideal, CONSTANT + 4)
