"""What goes wrong is an error on every rank, says who and where, and never a hang."""

from __future__ import annotations

import math
import pickle
import random
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from collective_lab import PATIENCE, all_exact, communicators, results, start, together
from forked import begin_child, in_child, said_yes

from catchment.controlplane.jobs import JobPlan
from catchment.host import Stream
from catchment.host.collectives import Block, CollectiveError, Communicator, Delayed, Fixed, calls
from catchment.sim.lab.shm_lab import ShmLab

NAMES = ("w0", "w1", "w2")
SOON = 3.0
"""A timeout that is waited for: what has to happen before it, on a busy machine too, is a call in another thread."""


@pytest.fixture(scope="module")
def lab() -> Iterator[ShmLab]:
    with ShmLab(NAMES, slots=4096) as lab:
        yield lab


@pytest.fixture
def job(lab: ShmLab, request: pytest.FixtureRequest) -> JobPlan:
    return lab.allreduce(NAMES, slots=32, packed=True, name=request.node.name[:40])


@pytest.fixture
def ranks(lab: ShmLab, job: JobPlan) -> Iterator[list[Communicator]]:
    with communicators(lab, job) as all_ranks:
        yield all_ranks


def mismatched(number: int, rank: Communicator) -> Any:
    """Ways in which rank 1 differs from the others."""
    other = rank.rank == 1
    zeros = np.zeros(1000, np.float32)
    match number:
        case 0:
            return rank.all_reduce(np.zeros(1000 + other, np.float32))
        case 1:
            return rank.all_reduce(np.zeros(1000, np.int32 if other else np.float32))
        case 2:
            return rank.all_reduce(zeros, scaling=Fixed(3 + other))
        case 3:
            return rank.all_reduce(zeros, scaling=Fixed(3) if other else Block())
        case 4:
            return rank.all_reduce(zeros, op="mean" if other else "sum")
        case 5:
            return rank.barrier() if other else rank.all_reduce(zeros)
        case 6:
            return rank.broadcast(zeros, root=1 if other else 0)
        case 7:
            return rank.all_reduce(zeros, tag=7 if other else 8)
        case 8:
            return rank.all_reduce(zeros, scaling=Block(packed=other))
        case _:
            return rank.all_reduce(np.zeros(0 if other else 5000, np.int32))


@pytest.mark.parametrize("number", range(10))
def test_a_mismatch_is_an_error_on_every_rank_and_the_next_operation_works(
    number: int, ranks: list[Communicator]
) -> None:
    def body(rank: Communicator) -> Any:
        work = mismatched(number, rank)
        after = np.full(777, rank.rank + 1, np.int32)
        following = rank.all_reduce(after)
        with pytest.raises(CollectiveError) as caught:
            work.wait(PATIENCE)
        following.wait(PATIENCE)
        assert set(after) == {6}
        return caught.value

    errors = together(ranks, body)
    assert [type(error) for error in errors] == [CollectiveError] * 3, errors
    assert [error.kind for error in errors] == ["mismatch"] * 3
    assert [error.peers for error in errors] == [(1,), (0, 2), (1,)]
    assert all(error.seq is not None and not error.fatal for error in errors)


def test_swapped_operations_fail_both(ranks: list[Communicator]) -> None:
    def body(rank: Communicator) -> list[Any]:
        calls = [
            lambda: rank.all_reduce(np.zeros(300, np.float32), scaling=Fixed(1)),
            lambda: rank.all_gather(np.zeros(70, np.uint8), np.zeros(210, np.uint8)),
        ]
        works = [call() for call in (calls if rank.rank else calls[::-1])]
        together_again = rank.barrier()
        for work in works:
            with pytest.raises(CollectiveError):
                work.wait(PATIENCE)
        together_again.wait(PATIENCE)
        return [work.exception().kind for work in works]

    assert together(ranks, body) == [["mismatch"] * 2] * 3


def test_a_rank_that_does_not_call_is_named(ranks: list[Communicator]) -> None:
    errors = together(ranks, lambda rank: None if rank.rank == 2 else rank.barrier(timeout=SOON).wait(PATIENCE))
    assert errors[2] is None
    for error in errors[:2]:
        assert isinstance(error, CollectiveError), error
        assert error.kind == "missing" and error.peer == 2 and error.peers == (2,) and error.fatal
        assert "has not called" in error.message
    again = together(ranks[:2], lambda rank: rank.barrier().wait(PATIENCE))
    assert [str(error).split(" [")[0] for error in again] == [str(error).split(" [")[0] for error in errors[:2]]
    assert ranks[0].error is not None


def test_a_rank_that_never_came_is_named(lab: ShmLab, job: JobPlan) -> None:
    ranks = [lab.communicator(job, name, timeout=SOON) for name in NAMES[:2]]
    try:
        errors = together(ranks, lambda rank: rank.barrier().wait(PATIENCE))
        assert [error.peers for error in errors] == [(2,), (2,)], errors
        assert all("cannot be heard" in error.message and error.seq == 0 for error in errors)
    finally:
        for rank in ranks:
            rank.close()


@pytest.mark.sampled(4)
def test_a_killed_rank_is_named_within_the_timeout(lab: ShmLab, job: JobPlan) -> None:
    members = start(lab, job, forever=True, operations=1 << 30, most=20_000, seed=0, timeout=4.0)
    for member in members.values():
        assert member.stdout is not None
        assert member.stdout.readline() == "started\n"
    members["w1"].kill()
    members["w1"].communicate()
    said = results({name: members[name] for name in ("w0", "w2")})
    assert {name: (result["kind"], result["peers"]) for name, result in said.items()} == {
        "w0": ("missing", [1]),
        "w2": ("missing", [1]),
    }, said


def test_a_switch_restart_changes_nothing(rng: random.Random) -> None:
    with ShmLab(NAMES) as lab:
        job = lab.allreduce(NAMES, slots=32)
        members = start(lab, job, forever=True, operations=60, most=30_000, seed=0, timeout=60.0)
        for member in members.values():
            assert member.stdout is not None
            assert member.stdout.readline() == "started\n"
        for _ in range(2):
            lab.kill_switch()
            lab.restart_switch()
        all_exact(results(members))


def test_a_dead_switch_is_unreachable(rng: random.Random) -> None:
    with ShmLab(NAMES[:2]) as lab:
        job = lab.allreduce(NAMES[:2])
        with communicators(lab, job, timeout=10 * PATIENCE) as ranks:
            assert together(ranks, lambda rank: rank.barrier().wait(PATIENCE)) == [None] * 2
            lab.kill_switch()
            errors = together(ranks, lambda rank: rank.barrier().wait(PATIENCE))
            assert [error.kind for error in errors] == ["unreachable"] * 2, errors
            assert all("the switch s1 at" in str(error) and "has gone" in str(error) for error in errors), errors


def test_cancelled_before_it_began(ranks: list[Communicator]) -> None:
    # The last rank is not there yet, so no window moves and the later operations wait in the queue.
    big = [np.ones(64 * 200, np.int32) for _ in ranks]
    small = [np.ones(10, np.int32) for _ in ranks]
    works = [(rank.all_reduce(big[i]), rank.all_reduce(small[i])) for i, rank in enumerate(ranks[:2])]
    assert works[0][1].cancel()
    works.append((ranks[2].all_reduce(big[2]), ranks[2].all_reduce(small[2])))

    def body(rank: Communicator) -> CollectiveError:
        works[rank.rank][0].wait(PATIENCE)
        with pytest.raises(CollectiveError) as caught:
            works[rank.rank][1].wait(PATIENCE)
        rank.barrier().wait(PATIENCE)
        return caught.value

    errors = together(ranks, body)
    assert [(error.kind, error.peers) for error in errors] == [("cancelled", (0,))] * 3
    assert all((array == 3).all() for array in big)
    assert all((array == 1).all() for array in small)
    assert not works[0][0].cancel()


def test_an_urgent_operation_overtakes(ranks: list[Communicator]) -> None:
    """Whether it has is seen by a thread that may come too late to see it: then again."""

    def body(rank: Communicator) -> bool:
        bulk = rank.all_reduce(np.ones(64 * 20_000, np.int32))
        urgent = rank.all_reduce(np.ones(64, np.int32), priority=1)
        urgent.wait(PATIENCE)
        overtaken = not bulk.done()
        bulk.wait(PATIENCE)
        return overtaken

    for _ in range(20):
        seen = together(ranks, body)
        assert all(isinstance(one, bool) for one in seen), seen
        if all(seen):
            return
    pytest.fail(f"it has not overtaken on every rank in any of 20 times, at last {seen}")


def test_different_priorities_are_an_error(ranks: list[Communicator]) -> None:
    def body(rank: Communicator) -> None:
        works = [rank.all_reduce(np.ones(64 * 500, np.int32)) for _ in range(3)]
        works.append(rank.all_reduce(np.ones(64, np.int32), priority=rank.rank))
        for work in works:
            work.wait(PATIENCE)

    errors = together(ranks, body)
    assert [getattr(error, "kind", error) for error in errors] == ["mismatch"] * 3, errors


def test_waiting_gives_up_and_the_operation_goes_on(ranks: list[Communicator]) -> None:
    arrays = [np.ones(300, np.float32) for _ in ranks]
    first = ranks[0].all_reduce(arrays[0])
    with pytest.raises(TimeoutError):
        first.wait(0.05)
    assert not first.done() and first.exception() is None
    others = [rank.all_reduce(array) for rank, array in zip(ranks[1:], arrays[1:], strict=True)]
    for work in [first, *others]:
        work.wait(PATIENCE)
    assert all((array == 3).all() for array in arrays)
    assert first.statistics.latency >= 0.05 and first.statistics.vectors == 1 + 5


def test_delayed_scaling_follows_the_values(ranks: list[Communicator]) -> None:
    """Values that grow beyond what is expected are sent again, and nothing is cut."""

    def body(rank: Communicator) -> list[tuple[bool, int, int]]:
        seen = []
        for magnitude in (1.0, 1.0, 1000.0, 1000.0, 1.0, np.inf):
            array = np.full(300, magnitude, np.float32)
            work = rank.all_reduce(array, scaling=Delayed("layer", length=2, margin=1))
            work.wait(PATIENCE)
            assert (array == np.float32(3 * magnitude)).all()
            seen.append((work.statistics.any_saturated, work.statistics.exponent, rank.stats()["exponents_missed"]))
        return seen

    wanted = [(False, 1, 0), (False, 1, 0), (False, 10, 1), (False, 10, 1), (False, 1, 1), (False, -128, 2)]
    assert together(ranks, body) == [wanted] * 3


@pytest.mark.parametrize("size", [200, 300])
def test_nonfinite_values_are_what_everybody_gets(ranks: list[Communicator], size: int) -> None:
    def body(rank: Communicator) -> tuple[int, int, bool]:
        array = np.ones(size, np.float32)
        if rank.rank == 1:
            array[3], array[4] = np.nan, np.inf
        work = rank.all_reduce(array)
        work.wait(PATIENCE)
        assert np.isnan(array[3]) and array[4] == np.inf and (np.delete(array, (3, 4)) == 3).all()
        return work.statistics.saturated, work.statistics.nonfinite, work.statistics.any_saturated

    assert together(ranks, body) == [(0, 0, False), (0, 2, False), (0, 0, False)]


def test_fixed_scaling_spoils_the_vector_of_what_is_not_finite(ranks: list[Communicator]) -> None:
    """Its lanes say that something is not finite, not what."""

    def body(rank: Communicator) -> tuple[int, int, bool]:
        array = np.ones(300, np.float32)
        if rank.rank == 1:
            array[100] = -np.inf
        work = rank.all_reduce(array, scaling=Fixed(1))
        work.wait(PATIENCE)
        lanes = rank.stream.lanes
        vector = 100 // lanes
        assert np.flatnonzero(np.isnan(array)).tolist() == list(range(vector * lanes, (vector + 1) * lanes))
        assert np.nanmin(array) == np.nanmax(array) == 3
        return work.statistics.saturated, work.statistics.nonfinite, work.statistics.any_saturated

    assert together(ranks, body) == [(0, 0, True), (1, 1, True), (0, 0, True)]


def test_torch_tensors_are_reduced_in_place(ranks: list[Communicator]) -> None:
    import torch

    def body(rank: Communicator) -> bool:
        tensor = torch.full((129,), float(rank.rank + 1), dtype=torch.bfloat16)
        rank.all_reduce(tensor, op="mean").wait(PATIENCE)
        return bool((tensor == 2).all())

    assert together(ranks, body) == [True] * 3


def test_closing_fails_what_is_pending(ranks: list[Communicator]) -> None:
    work = ranks[0].barrier()
    ranks[0].close()
    with pytest.raises(CollectiveError) as caught:
        work.wait()
    assert caught.value.kind == "closed"
    assert pickle.loads(pickle.dumps(caught.value)).kind == "closed"
    with pytest.raises(CollectiveError):
        ranks[0].barrier().wait()


@pytest.mark.parametrize("length", [1, 5000])
def test_a_job_that_an_earlier_run_has_used_is_an_error_and_not_a_hang(lab: ShmLab, length: int) -> None:
    """However short the earlier run was, whoever calls and whoever does not."""
    job = lab.allreduce(NAMES, slots=32, name="used")

    def body(rank: Communicator) -> Any:
        rank.all_reduce(np.ones(length, np.int32)).wait(PATIENCE)

    with communicators(lab, job) as first:
        assert together(first, body) == [None] * 3
    with communicators(lab, job, timeout=10 * PATIENCE) as second:
        outcome = together(second, body)
    assert [getattr(error, "kind", error) for error in outcome] == ["used"] * 3
    assert "catchment job renew" in str(outcome[0])


def test_who_has_closed_has_given_its_port_back(lab: ShmLab, job: JobPlan) -> None:
    """Also while something still refers to the closed one, as a traceback or an unfinished work does."""
    with communicators(lab, job) as closed:
        work = closed[0].all_reduce(np.ones(8, np.float32))
        for rank in closed:
            rank.close(0.0)
        with communicators(lab, lab.allreduce(NAMES, slots=32, name="after")) as ranks:
            assert together(ranks, lambda rank: float(summed(rank))) == [3.0] * 3
        with pytest.raises(CollectiveError, match="is closed"):
            work.wait(PATIENCE)
        with pytest.raises(CollectiveError, match="is closed"):
            closed[1].barrier().wait(PATIENCE)
        assert closed[2].stats()["operations"] == 0
    where: dict[str, Any] = {"switch": ("127.0.0.1", 51836), "port": "udp"}
    stream = Stream(gen=1, workers=2, lanes=8, slots=4)
    first = Communicator(stream, rank=0, local=("127.0.0.1", 0), **where)
    with pytest.raises(CollectiveError, match="cannot open"):
        Communicator(stream, rank=1, local=first.local, **where)
    first.close()
    Communicator(stream, rank=1, local=first.local, **where).close()


def summed(rank: Communicator) -> np.float32:
    array = np.ones(8, np.float32)
    rank.all_reduce(array).wait(PATIENCE)
    return array[0]


def test_a_forked_child_is_refused_and_ends(ranks: list[Communicator]) -> None:
    def refused() -> bool:
        with pytest.raises(CollectiveError) as caught:
            ranks[0].barrier()
        ranks[0].close()
        ranks[0].__del__()
        return caught.value.kind == "forked"

    assert in_child(refused)
    assert together(ranks, lambda rank: rank.barrier().wait(PATIENCE)) == [None] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda rank: rank.all_reduce([1, 2]),
        lambda rank: rank.all_reduce(np.zeros(4, np.float64)),
        lambda rank: rank.all_reduce(np.zeros((4, 4), np.float32)[:, 1]),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), np.zeros(5, np.float32)),
        lambda rank: rank.all_reduce(np.zeros(4, np.int32), op="mean"),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), op="product"),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), scaling=Fixed(200)),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), scaling=3),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), timeout=0.0),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), timeout=-math.inf),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), timeout=math.nan),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), timeout="3"),
        lambda rank: rank.all_reduce(np.zeros(4, np.float32), tag=-1),
        lambda rank: rank.reduce(np.zeros(4, np.float32), root=3),
        lambda rank: rank.broadcast(b"read-only", root=(rank.rank + 1) % 3),
        lambda rank: rank.reduce_scatter(np.zeros(7, np.float32), np.zeros(2, np.float32)),
        lambda rank: rank.all_gather(np.zeros(2, np.float32), np.zeros(5, np.float32)),
    ],
)
def test_bad_arguments_are_refused_at_once(call: Any, ranks: list[Communicator]) -> None:
    with pytest.raises(CollectiveError) as caught:
        call(ranks[0])
    assert caught.value.kind == "argument"


def test_seconds_as_the_library_takes_them() -> None:
    most = calls.nanoseconds("a timeout of", math.inf)
    assert most == calls.nanoseconds("a timeout of", 1e12) == calls.positive_nanoseconds("a timeout of", 10**400)
    assert most > 100 * 365 * 24 * 3600 * 10**9
    assert calls.nanoseconds("a wait of", -math.inf) == calls.nanoseconds("a wait of", 0) == 0
    assert calls.positive_nanoseconds("a timeout of", 1e-12) == 1
    assert calls.nanoseconds("a wait of", np.float32(1.5)) == 1_500_000_000


def test_the_longest_timeouts_are_taken(ranks: list[Communicator]) -> None:
    arrays = [np.full(700, rank + 1.0, np.float32) for rank in range(3)]

    def add(rank: Communicator) -> None:
        work = rank.all_reduce(arrays[rank.rank], timeout=(math.inf, 1e12, 1e300)[rank.rank])
        with pytest.raises(CollectiveError, match="a wait of nan") as caught:
            work.wait(math.nan)
        assert caught.value.kind == "argument"
        work.wait(math.inf)

    assert together(ranks, add) == [None] * 3
    assert all((array == 6.0).all() for array in arrays)


def test_the_longest_times_of_a_communicator_are_taken(lab: ShmLab, job: JobPlan) -> None:
    with communicators(lab, job, timeout=math.inf, absent=1e12) as ranks:
        assert together(ranks, lambda rank: rank.barrier().wait(PATIENCE)) == [None] * 3


def test_bad_communicators_are_refused() -> None:
    stream = Stream(gen=1, workers=4)
    where: dict[str, Any] = {"local": ("127.0.0.1", 0), "switch": ("127.0.0.1", 51836)}
    for wrong in (
        {"rank": 4},
        {"rank": 0, "timeout": 0},
        {"rank": 0, "timeout": math.nan},
        {"rank": 0, "timeout": "3"},
        {"rank": 0, "absent": math.nan},
        {"rank": 0, "spin": math.nan},
        {"rank": 0, "window": 65},
        {"rank": 0, "port": "serial:1"},
        {"rank": 0, "local": ("here", 1)},
    ):
        with pytest.raises(CollectiveError) as caught:
            Communicator(stream, **{**where, **wrong})
        assert caught.value.kind == "argument"
    with pytest.raises(CollectiveError, match="lanes are too few"):
        Communicator(Stream(gen=1, workers=5, lanes=8), rank=0, **where)


def test_the_port_is_chosen(lab: ShmLab, job: JobPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_SHM_PORT", str(lab.path("w{rank}")))
    with lab.communicator(job, "w1", port="auto") as rank:
        assert rank.port == f"shm:{lab.path('w1')}"
    monkeypatch.setenv("CATCHMENT_SHM_PORT", "/nowhere/{rank}")
    description = job.describe("w1") | {"local": ("127.0.0.1", 0), "switch": ("127.0.0.1", 51836)}
    with Communicator.of_job(description, port="auto") as rank:
        assert rank.port == "udp"


def test_a_rank_without_memory_for_a_maximum_says_so_to_all(lab: ShmLab, job: JobPlan) -> None:
    """All ranks' arrays are kept until it is done: whoever has no room cancels it, and goes on."""
    elements = 50_000_000

    def poor() -> bool:
        with lab.communicator(job, NAMES[1], timeout=40.0) as rank:
            array = np.zeros(elements, np.float32)
            used = 1024 * int(Path("/proc/self/status").read_text().split("VmSize:")[1].split()[0])
            resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), resource.RLIM_INFINITY))
            with pytest.raises(CollectiveError, match=r"no memory for the 600000000 bytes.*rank 1.*parts") as info:
                rank.all_reduce(array, op="max").wait(40)
            rank.barrier().wait(40)
            return info.value.kind == "system" and not info.value.fatal

    child = begin_child(poor)
    with lab.communicator(job, NAMES[0], timeout=40.0) as first, lab.communicator(job, NAMES[2], timeout=40.0) as last:
        said = together([first, last], lambda rank: rank.all_reduce(np.zeros(elements, np.float32), op="max").wait(40))
        after = together([first, last], lambda rank: rank.barrier().wait(40))
    assert said_yes(child)
    assert [(error.kind, error.peers) for error in said] == [("cancelled", (1,))] * 2
    assert not [error for error in after if isinstance(error, Exception)]
