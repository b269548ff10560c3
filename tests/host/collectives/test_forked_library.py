"""The C library itself refuses a forked child: a program in C has no other guard."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from c_caller import Call, c_caller
from collective_lab import PATIENCE, communicators, together
from forked import LIMIT, in_child

from catchment.host.collectives import Communicator, calls
from catchment.host.collectives.library import FAILED, RUNS, SUCCEEDED, Result
from catchment.sim.lab.shm_lab import ShmLab

NAMES = ["w0", "w1"]
SECOND = 10**9
FORKS = 20


@pytest.fixture
def ranks() -> Iterator[list[Communicator]]:
    with ShmLab(NAMES) as lab, communicators(lab, lab.allreduce(NAMES, slots=16), spin=LIMIT) as made:
        yield made


def refused(work: int) -> bool:
    """Whether a work is done at once, and says that it belongs to another process."""
    result = Result()
    failed = c_caller().catchment_work_wait(work, LIMIT * SECOND) == c_caller().catchment_work_done(work) == FAILED
    c_caller().catchment_work_result(work, ctypes.byref(result))
    return failed and bool(result.failed) and result.kind == b"forked"


def starts_nothing(group: int) -> bool:
    """Whether an operation that a child starts is refused."""
    return c_caller().catchment_group_forked(group) == 1 and refused(
        c_caller().catchment_group_start(group, ctypes.byref(Call(kind=calls.BARRIER)))
    )


def closes_nothing(group: int) -> bool:
    """Whether what a child closes and frees comes back."""
    c_caller().catchment_group_close(group, SECOND)
    c_caller().catchment_group_free(group)
    return True


def test_a_child_starts_and_closes_nothing(ranks: list[Communicator]) -> None:
    assert c_caller().catchment_group_forked(ranks[0].handle) == 0
    assert in_child(lambda: starts_nothing(ranks[0].handle))
    assert in_child(lambda: closes_nothing(ranks[0].handle))
    arrays = [np.full(5000, rank + 1.0, np.float32) for rank in range(2)]
    together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait(PATIENCE))
    assert all((array == 3.0).all() for array in arrays)


def test_a_child_does_not_wait_for_what_its_parent_has_under_way(ranks: list[Communicator]) -> None:
    work = c_caller().catchment_group_start(ranks[0].handle, ctypes.byref(Call(kind=calls.BARRIER)))
    assert in_child(lambda: refused(work))
    assert c_caller().catchment_work_wait(work, 0) == c_caller().catchment_work_done(work) == RUNS
    other = ranks[1].barrier()
    assert c_caller().catchment_work_wait(work, int(PATIENCE * SECOND)) == SUCCEEDED
    assert c_caller().catchment_work_done(work) == SUCCEEDED
    other.wait(PATIENCE)
    c_caller().catchment_work_free(work)


def test_a_child_reads_counters_whoever_had_the_turn(ranks: list[Communicator]) -> None:
    """A thread that waits has the turn for most of its time; in a child nobody gives it back."""
    work = ranks[0].barrier()
    waiter = threading.Thread(target=work.wait_quietly)
    waiter.start()
    for _ in range(FORKS):
        assert in_child(lambda: ranks[0].stats()["in_callers"] == 0)
    ranks[1].barrier().wait(PATIENCE)
    waiter.join()
    assert ranks[0].stats()["operations"] == 1
