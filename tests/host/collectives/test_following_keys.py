"""Ranks whose keys follow one another, without a controller: the test gives switch and ranks what it would give."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from catchment.controlplane.jobs import JobGroup, JobPlan, give_keys, remove
from catchment.controlplane.topology import racks
from catchment.host import EndpointError, Stream
from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.lab.shm_lab import LUWU, ShmLab
from catchment.sim.lab.tree_lab import TreeLab
from catchment.wire.generated.constants import DropReason

NAMES = ("w0", "w1", "w2")
LANES, BITS = 8, 8
TERM = 1 << BITS
WAIT = 120.0
SHORT = 5.0
"""The timeout of operations that are to fail: a busy machine stalls for less."""


@pytest.fixture(scope="module", params=["star", pytest.param("tree", marks=pytest.mark.slow)])
def lab(request: pytest.FixtureRequest) -> Iterator[ShmLab | TreeLab]:
    if request.param == "star":
        with ShmLab(NAMES, lanes=LANES, slots=64, tags=True) as lab:
            yield lab
        return
    bare = racks([NAMES[:2], NAMES[2:]], [], program=LUWU, lanes=LANES, slots=64)
    switches = {name: replace(one, tags=True) for name, one in bare.switches.items()}
    with TreeLab(replace(bare, switches=switches)) as tree:
        yield tree


class Ranks:
    """Ranks that call the same operations, each in a thread."""

    def __init__(
        self, lab: ShmLab | TreeLab, job: JobPlan, rng: random.Random, exits: ExitStack, **options: Any
    ) -> None:
        self._rng = rng
        self._pool = exits.enter_context(ThreadPoolExecutor(len(job.workers)))
        self.all: list[Communicator] = []
        for worker in job.workers:
            description = job.describe(worker, to_member=True)
            port = f"shm:{lab.path(worker) if isinstance(lab, ShmLab) else lab._path(worker)}"
            made = Communicator.of_job(description, **{"timeout": WAIT, "port": port, **options})
            self.all.append(exits.enter_context(made))

    def on_each(self, call: Callable[[int, Communicator], Any]) -> list[Any]:
        return list(self._pool.map(call, range(len(self.all)), self.all))

    def one(self) -> None:
        """One vector of integers beside the signatures' words, whose sum is compared."""
        parts = [np.array([self._rng.randrange(-(1 << 30), 1 << 30) for _ in range(LANES)], np.int32) for _ in self.all]

        def add(number: int, ranks: Communicator) -> None:
            total = np.zeros_like(parts[number])
            ranks.all_reduce(parts[number], total).wait(WAIT)
            np.testing.assert_array_equal(total, sum(parts))

        self.on_each(add)

    def many(self, count: int) -> None:
        """Several of these, one after the other."""
        for _ in range(count):
            self.one()

    def until_due(self, term: int) -> int:
        """Operations until all want the key behind `term`; how many there were."""
        count = 0
        while not all(ranks.key_due == term for ranks in self.all):
            self.one()
            count += 1
            assert count < 2 * TERM
        return count


@pytest.fixture
def job(lab: ShmLab | TreeLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[JobPlan]:
    monkeypatch.setattr("catchment.controlplane.jobs.planning.TERM_BITS", BITS)
    job = lab.allreduce(list(NAMES), slots=4, tags=True)
    yield job
    remove(job, lab.fabric.clients)


def refused(lab: ShmLab | TreeLab) -> int:
    return sum(one.counter("drops", DropReason.BAD_TAG)[0].packets for one in lab.fabric.clients.values())


@pytest.mark.sampled(4)
def test_a_rank_wants_a_key_once_nobody_needs_the_oldest(
    lab: ShmLab | TreeLab, job: JobPlan, rng: random.Random
) -> None:
    """Only the next one's is taken; the old key's frames and those of a key that the switch lacks are refused."""
    gen, before = job.stream("sums").gen, refused(lab)
    with ExitStack() as exits:
        ranks = Ranks(lab, job, rng, exits)
        assert [one.key_due for one in ranks.all] == [0] * len(NAMES)
        called, due = ranks.until_due(1), TERM + TERM // 8
        assert due / 3 <= called <= due / 2 + 8, "each has two vectors, and agendas stand between them"
        now = job.come_to({gen: 1})
        term, key = now.stream("sums").latest
        for wrong in (0, 1, 3, 4):
            assert not any(one.take_key(wrong, key) for one in ranks.all)
        give_keys(JobGroup.alone(now), {gen}, lab.topology, lab.fabric.clients)
        assert all(one.take_key(term, key) for one in ranks.all)
        assert not any(one.take_key(term, key) or one.key_due for one in ranks.all)
        ranks.until_due(2)
        assert refused(lab) == before and all(one.stats()["forged"] == 0 for one in ranks.all)


def test_a_key_that_the_switch_lacks_brings_no_sum(lab: ShmLab | TreeLab, job: JobPlan, rng: random.Random) -> None:
    before = refused(lab)
    with ExitStack() as exits:
        ranks = Ranks(lab, job, rng, exits, timeout=SHORT)
        ranks.until_due(1)
        assert all(one.take_key(2, "5a" * 16) for one in ranks.all)
        with pytest.raises(CollectiveError) as failed:
            ranks.many(TERM)
        assert failed.value.seq == 2 * TERM, "the first vector of the term behind the two"
        assert refused(lab) > before


def test_ranks_wait_at_the_end_and_fail_together(lab: ShmLab | TreeLab, job: JobPlan, rng: random.Random) -> None:
    """No vector less than the keys serve for, and none more."""
    with ExitStack() as exits:
        ranks = Ranks(lab, job, rng, exits, timeout=SHORT)

        def run_out(_: int, rank: Communicator) -> CollectiveError:
            try:
                while True:
                    rank.all_reduce(np.ones(LANES, np.int32)).wait(WAIT)
            except CollectiveError as error:
                return error

        for error in ranks.on_each(run_out):
            assert error.kind == "spent" and error.fatal and error.seq == 2 * TERM - 1
            assert "catchment job show" in str(error.hint)


def test_what_cannot_follow() -> None:
    good = Stream(gen=1, workers=2, slots=16, lanes=LANES, key="ab" * 16, term_bits=BITS)
    for changes in ({"base_seq": 1}, {"key": ""}, {"slots": 32}, {"term_bits": 31}):
        with pytest.raises(EndpointError, match="term_bits"):
            replace(good, **changes)
    with pytest.raises(CollectiveError, match=r"give 8\.\.30 bits"):
        Communicator(replace(good, slots=4, term_bits=7), rank=0, local=("127.0.0.1", 0), switch=("127.0.0.1", 9))
