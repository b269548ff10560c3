"""Several communicators of one process on one shared-memory port: each gets its own stream, all of them one thread."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from collective_lab import PATIENCE, communicators, together
from test_rail_failures import until

from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.golden import collectives as golden
from catchment.sim.lab.shm_lab import ShmLab
from catchment.softswitch.shm import ShmError
from catchment.wire.generated.constants import DataType

NAMES = ("w0", "w1", "w2")
LANES, SLOTS, GROUPS = 64, 16, 5


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(NAMES, lanes=LANES, slots=4096, options="cells=16,bytes=512") as lab:  # a ring that one group fills
        yield lab


def threads() -> set[str]:
    """The threads of this process; the kernel shows one a little longer than others wait for its end."""
    return {path.name for path in Path("/proc/self/task").iterdir()}


def sums(ranks: Sequence[Communicator], elements: int, first: float) -> list[float]:
    """What each rank gets when rank r gives as many elements of `first` + r, and all elements are alike."""

    def body(rank: Communicator) -> float:
        array = np.full(elements, first + rank.rank, np.float32)
        rank.all_reduce(array).wait(PATIENCE)
        assert (array == array[0]).all()
        return float(array[0])

    return together(ranks, body)


def test_groups_in_threads_of_their_own_get_their_own_sums(lab: ShmLab, seed: int) -> None:
    """Each group of each rank in a thread: 15 threads, 3 ports."""
    members = [tuple(random.Random(seed + i).sample(NAMES, 2 + i % 2)) for i in range(GROUPS)]
    plans = [lab.allreduce(names, slots=SLOTS, name=f"group{i}") for i, names in enumerate(members)]

    def array(group: int, rank: int, step: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        elements = int(np.random.default_rng((seed, group, step)).choice([3, 300, 2000, 9000]))
        values = np.random.default_rng((seed, group, rank, step)).standard_normal(elements)
        return values.astype(np.float32)

    def body(group: int, rank: Communicator) -> None:
        for step in range(12):
            given = array(group, rank.rank, step)
            rank.all_reduce(given).wait(PATIENCE)
            every = [array(group, other, step) for other in range(rank.size)]
            assert np.array_equal(given, golden.total(every, DataType.FP32, lanes=LANES, slots=SLOTS)), (group, step)

    with ExitStack() as opened:
        groups = [opened.enter_context(communicators(lab, plan)) for plan in plans]
        outcomes: list[object] = [None] * GROUPS

        def run(group: int) -> None:
            outcomes[group] = together(groups[group], lambda rank: body(group, rank))

        running = [threading.Thread(target=run, args=(group,)) for group in range(GROUPS)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(PATIENCE)
        assert outcomes == [[None] * len(names) for names in members]
    for plan in plans:
        lab.remove(plan)


def test_many_groups_cost_one_thread_a_port(lab: ShmLab) -> None:
    plans = [lab.allreduce(NAMES, slots=SLOTS, name=f"many{i}") for i in range(GROUPS)]
    before = threads()
    with ExitStack() as opened:
        first = opened.enter_context(communicators(lab, plans[0]))
        own = threads() - before
        groups = [first, *(opened.enter_context(communicators(lab, plan)) for plan in plans[1:])]
        assert threads() - before == own and len(own) == len(NAMES)
        for ranks in groups:
            assert together(ranks, lambda rank: rank.barrier().wait(PATIENCE)) == [None] * len(NAMES)
    until(lambda: not threads() - before, "a thread goes on behind the last group")
    for plan in plans:
        lab.remove(plan)


def test_the_port_is_free_behind_the_last_group(lab: ShmLab) -> None:
    plans = [lab.allreduce(NAMES, slots=SLOTS, name=f"last{i}") for i in range(2)]
    first, second = (lab.communicator(plan, "w0", timeout=60.0) for plan in plans)
    first.close()
    with pytest.raises(ShmError, match="belongs to process"), lab.port("w0", timeout=0.2):
        pass
    second.close()
    with lab.port("w0", timeout=60.0):
        pass
    for plan in plans:
        lab.remove(plan)


def test_a_generation_that_the_process_has_is_refused(lab: ShmLab) -> None:
    plan = lab.allreduce(NAMES, slots=SLOTS, name="twice")
    with communicators(lab, plan) as ranks:
        with pytest.raises(CollectiveError, match="has generation") as raised:
            lab.communicator(plan, "w0")
        assert raised.value.kind == "system"
        assert together(ranks, lambda rank: rank.barrier().wait(PATIENCE)) == [None] * len(NAMES)
    lab.remove(plan)


def test_a_group_that_fails_leaves_the_others_alone(lab: ShmLab, rng: random.Random) -> None:
    plans = [lab.allreduce(NAMES, slots=SLOTS, name=f"fails{i}") for i in range(2)]
    with communicators(lab, plans[0], timeout=0.3) as alone, communicators(lab, plans[1]) as others:
        late = rng.randrange(len(NAMES))
        outcome = together(alone, lambda rank: None if rank.rank == late else rank.barrier().wait(PATIENCE))
        kinds = {error.kind for error in outcome if isinstance(error, CollectiveError)}
        assert kinds == {"missing"} and outcome[late] is None
        assert sums(others, 5000, 1.0) == [6.0] * 3
    for plan in plans:
        lab.remove(plan)


def test_what_a_job_held_is_given_again(lab: ShmLab) -> None:
    """More jobs, one after the other, than the switch has rows, slots or groups for."""
    for turn in range(80):
        plan = lab.allreduce(NAMES, slots=1024, name=f"turn{turn}")
        with communicators(lab, plan) as ranks:
            assert sums(ranks, 40, float(turn)) == [3.0 * turn + 3] * 3
        lab.remove(plan)
