"""What the hardware takes in clocks: planes, all-reduce, the way from one mini-batch to the next."""

from __future__ import annotations

import random
from contextlib import ExitStack
from itertools import pairwise

import pytest
from glm_case import SLOTS, SMALL, Case

from rtl.harness.glm_worker import VerilatedWorker
from sim.glm_rtl.fabric import GlmFabric, SlotJob, Weather, model_switch
from sim.glm_rtl.training import hardware_training
from sim.golden import glm_cycles

NIC_CLOCKS = 40
"""The issue's limit for the NIC's share of an all-reduce."""
QUEUED = 2
"""From the last bank's sum to `sums`: through a queue."""


def events_of(case: Case, hop: int = 60) -> dict[str, list[int]]:
    """Clocks of a lone worker's events over one epoch, memory fast enough; `received`: of each answer's last beat."""
    job = SlotJob(1, slots=SLOTS, rto=100_000)
    with ExitStack() as exits:
        worker = exits.enter_context(VerilatedWorker(SMALL, case.golden[0].words, case.rows))
        worker.pace(latency=10)
        worker.join(job.rounds(0))
        worker.weights = case.start[0]
        fabric = GlmFabric([worker], model_switch(job), case.rng, Weather(hop=hop), step=1)
        worker.start(hardware_training(case.numbers, case.step, case.loss))
        received = []
        while worker.busy:
            fabric.advance()
            if worker.last_received and worker.last_received not in received:
                received.append(worker.last_received)
        return {"received": received, **{name: worker.events(name) for name in ("sums", "sent", "full", "scales")}}


@pytest.mark.parametrize("bits", [2, 4, 7])
def test_a_micro_batch_takes_its_planes(bits: int, rng: random.Random) -> None:
    """Without a word or a credit to wait for, sums come every chunks * bits clocks: nothing is added between them.

    With fewer than four planes a chunk takes four clocks, its rows.
    """
    chunks = rng.randrange(1, 8)
    case = Case(rng, bits, features=64 * chunks, samples=48, batch=48)
    seen = events_of(case)
    assert [after - before for before, after in pairwise(seen["sums"])] == [chunks * max(bits, 4)] * 5


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
    assert ways == {33}


@pytest.mark.parametrize("micro_batches", [1, 2, 5])
def test_the_cycle_model_says_what_the_hardware_takes(micro_batches: int, rng: random.Random) -> None:
    """From the end of the first mini-batch to that of the last: within 2 %, and in fact to the clock."""
    chunks, bits, batch = rng.randrange(1, 8), rng.choice([2, 4, 6]), 8 * micro_batches
    seen = events_of(Case(rng, bits, features=64 * chunks, samples=5 * batch, batch=batch))
    all_reduce = seen["received"][0] - seen["sent"][0]
    done = glm_cycles.mini_batches([micro_batches] * 5, chunks, bits, all_reduce, glm_cycles.Pipeline(window=SLOTS))
    measured = seen["full"][-1] - seen["full"][micro_batches - 1]
    assert abs(measured / (done[-1] - done[0]) - 1) <= 0.02
