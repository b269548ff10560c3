"""Whatever jobs come and go: what two of them hold on a switch never overlaps, and all of it comes back."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from catchment.controlplane.jobs import Allocator, JobError, JobPlan, plan_job
from catchment.controlplane.jobs.allocation import JOB_ROWS, MAX_GROUP, Share
from catchment.controlplane.jobs.generations import KEY_BITS, MAX_GENERATION, GenerationOrder
from catchment.controlplane.topology import racks, star

SLOTS = 64
WORKERS = ["w0", "w1", "w2", "w3"]
TREE = racks([WORKERS[:2], WORKERS[2:]], ["opt"], program=Path("luwu.p4"), slots=SLOTS)
QUICK = settings(max_examples=60, deadline=None)


class Jobs(RuleBasedStateMachine):
    """Jobs on a tree against a set of cells that are taken."""

    alive = Bundle("alive")

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[int, JobPlan] = {}
        self.next_generation = MAX_GENERATION - 20  # so that it wraps
        self.order = GenerationOrder(7)
        self.given: list[int] = []
        self.number = 0

    def allocator(self) -> Allocator:
        held = [share for job in self.jobs.values() for stream in job.streams for share in stream.shares]
        used = [stream.gen for job in self.jobs.values() for stream in job.streams]
        return Allocator(TREE, held, next_generation=self.next_generation, order=self.order, used_generations=used)

    @rule(
        target=alive,
        workers=st.lists(st.sampled_from(WORKERS), min_size=1, max_size=4, unique=True),
        slots=st.sampled_from([1, 2, 4, 8, 16, 32, 64]),
        luwu=st.booleans(),
    )
    def create(self, workers: list[str], slots: int, luwu: bool) -> int:
        allocator, self.number = self.allocator(), self.number + 1
        common = {"name": f"j{self.number}", "workers": workers, "slots": slots, "allocator": allocator}
        try:
            job = plan_job("luwu", TREE, root="opt", **common) if luwu else plan_job("allreduce", TREE, **common)  # type: ignore[arg-type]
        except JobError:
            return 0  # full; `test_a_refusal_is_never_wrong` has that
        self.jobs[self.number] = job
        self.next_generation = allocator.next_generation
        self.given += [stream.gen for stream in job.streams]
        return self.number

    @rule(number=consumes(alive))
    def remove(self, number: int) -> None:
        self.jobs.pop(number, None)

    @rule(number=alive)
    def renew(self, number: int) -> None:
        if number in self.jobs:
            allocator = self.allocator()
            old, new = self.jobs[number], self.jobs[number].renewed(allocator)
            self.jobs[number], self.next_generation = new, allocator.next_generation
            self.given += [stream.gen for stream in new.streams]
            assert [s.shares for s in new.streams] == [s.shares for s in old.streams]

    @invariant()
    def nothing_overlaps(self) -> None:
        shares = [(n, share) for n, job in self.jobs.items() for stream in job.streams for share in stream.shares]
        for switch in TREE.switches:
            here = [(n, share) for n, share in shares if share.switch == switch]
            cells = [cell for _, s in here for cell in range(s.base, s.base + s.slots)]
            assert len(cells) == len(set(cells))
            assert all(0 <= cell < SLOTS for cell in cells)
            assert all(s.base % s.slots == 0 for _, s in here if s.slots)
            assert all(s.slots & (s.slots - 1) == 0 for _, s in here)
            rows = [s.row for _, s in here]
            assert len(rows) == len(set(rows))
            assert all(0 <= row < JOB_ROWS for row in rows)
            groups = {(n, s.group) for n, s in here}
            assert len({group for _, group in groups}) == len(groups), "two jobs share a multicast group"
            assert all(1 < group <= MAX_GROUP for _, group in groups)

    @invariant()
    def no_generation_is_given_twice(self) -> None:
        assert len(self.given) == len(set(self.given))
        assert all(1 <= generation <= MAX_GENERATION for generation in self.given)

    @invariant()
    def nobody_gets_another_s_port(self) -> None:
        # Ports are held by the store, which knows all jobs; within a job every host has one.
        assert all(len(job.ports) == len(job.workers) + (job.root is not None) for job in self.jobs.values())

    def teardown(self) -> None:
        self.jobs.clear()
        assert [self.allocator().share("sp", SLOTS).base] == [0], "not every slot came back"


@settings(max_examples=4, deadline=None)
@given(key=st.integers(0, (1 << KEY_BITS) - 1))
def test_the_order_has_every_generation_once(key: int) -> None:
    order = GenerationOrder(key)
    places = range(1, MAX_GENERATION + 1)
    assert {order.at(place) for place in places} == set(places)
    assert all(order.place(order.at(place)) == place for place in (*places[:50], *places[::997]))


def test_a_tenant_cannot_count_on_from_its_own_generation(seed: int) -> None:
    """A tenant with a dozen generations of its own knows the next no better than by guessing."""
    rng = random.Random(seed)
    steps = Counter()
    for _ in range(200):
        order = GenerationOrder(rng.getrandbits(KEY_BITS))
        place = rng.randrange(1, MAX_GENERATION - 12)
        near = [order.at(place + k) for k in range(12)]
        steps.update((b - a) % (MAX_GENERATION + 1) for a, b in pairwise(near))
    assert max(steps.values()) <= 5, steps.most_common(3)


TestJobs = Jobs.TestCase
TestJobs.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


@QUICK
@given(sizes=st.lists(st.sampled_from([0, 1, 2, 4, 8, 16, 32, 64]), max_size=40))
def test_a_refusal_is_never_wrong(sizes: list[int]) -> None:
    """Aligned gaps are found whenever there is one: compared with a bitmap of the switch."""
    allocator = Allocator(star(["w0"], program=Path("luwu.p4"), slots=SLOTS))
    taken = [False] * SLOTS
    for size in sizes:
        fits = size == 0 or any(not any(taken[b : b + size]) for b in range(0, SLOTS, size))
        try:
            share: Share | None = allocator.share("s1", size)
        except JobError:
            share = None
        assert (share is not None) == fits
        if share is not None and size:
            taken[share.base : share.base + size] = [True] * size
