"""What a Work and its communicator hold, and for how long; waiting beside other threads, signals, forks and the end."""

from __future__ import annotations

import gc
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest
from collective_lab import PATIENCE, communicators, together
from forked import LIMIT, in_child

from catchment.checkout import ROOT
from catchment.host import Stream, _collectives
from catchment.host.collectives import CollectiveError, Communicator, Work, calls
from catchment.sim.lab.shm_lab import ShmLab

NAMES = ["w0", "w1"]
LOCAL = ("127.0.0.1", 0)


class Vector(np.ndarray[Any, Any]):
    """An array that may have attributes."""


@pytest.fixture
def ranks() -> Iterator[list[Communicator]]:
    with ShmLab(NAMES) as lab, communicators(lab, lab.allreduce(NAMES, slots=16)) as made:
        yield made


@pytest.fixture
def alone() -> Iterator[Communicator]:
    """A rank that no switch answers, so that nothing of it is ever done."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(LOCAL)
        made = Communicator(
            Stream(gen=1, workers=2), rank=0, local=LOCAL, switch=silent.getsockname(), port="udp", timeout=1000.0,
            absent=None,
        )  # fmt: skip
        yield made
        made.close(0.0)


def vector(value: float) -> tuple[Vector, weakref.ref[Vector]]:
    """An array, and whether it is still there."""
    made = np.full(700, value, np.float32).view(Vector)
    return made, weakref.ref(made)


def test_arrays_whose_work_is_dropped_live_until_it_is_done(ranks: list[Communicator]) -> None:
    given, first = vector(1.0)
    out, second = vector(0.0)
    ranks[0].all_reduce(given, out)
    del given, out
    ranks[0].barrier()
    gc.collect()
    assert first() is not None and second() is not None
    other = np.full(700, 2.0, np.float32)
    ranks[1].all_reduce(other)
    ranks[1].barrier()
    for rank in ranks:  # what comes before is done with it, and is found to be when the next one starts
        rank.barrier()
    together(ranks, lambda rank: rank.barrier().wait(PATIENCE))
    assert (other == 3.0).all()
    ranks[0].barrier()
    assert first() is None and second() is None


@pytest.mark.parametrize("look", [lambda work: work.wait(PATIENCE), lambda work: work.done()])
def test_a_work_that_is_seen_to_be_done_has_given_its_arrays_back(ranks: list[Communicator], look: Any) -> None:
    given, there = vector(1.0)
    work = ranks[0].all_reduce(given)
    behind = ranks[0].barrier()
    del given
    assert not work.done() and there() is not None
    ranks[1].all_reduce(np.full(700, 2.0, np.float32))
    ranks[1].barrier().wait(PATIENCE)
    behind.wait(PATIENCE)
    look(work)
    assert there() is None
    assert work.done() and work.exception() is None and work.operation == "all_reduce(700 x fp32, 2800 bytes)"
    assert work.statistics.vectors > 0


def test_a_wait_that_gives_up_gives_nothing_back(alone: Communicator) -> None:
    given, there = vector(1.0)
    work = alone.all_reduce(given)
    del given
    for seconds in (0, 0.01, -1.0):
        with pytest.raises(TimeoutError, match=f"is not done after {seconds} s; it goes on"):
            work.wait(seconds)
    del work
    gc.collect()
    assert there() is not None
    alone.close(0.0)
    alone.barrier()
    assert there() is None


def test_arrays_are_given_back_with_a_communicator_that_is_dropped() -> None:
    given, there = vector(1.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(LOCAL)
        made = Communicator(Stream(gen=1, workers=2), rank=0, local=LOCAL, switch=silent.getsockname(), port="udp")
        work = made.all_reduce(given)
        made.barrier()
        del given, made
        with pytest.raises(CollectiveError) as caught:
            work.wait(PATIENCE)
    assert caught.value.kind == "closed" and there() is None


def test_a_cycle_of_arrays_and_their_communicator_is_collected() -> None:
    given, there = vector(1.0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(LOCAL)
        made = Communicator(Stream(gen=1, workers=2), rank=0, local=LOCAL, switch=silent.getsockname(), port="udp")
        given.communicator, given.work = made, made.all_reduce(given)  # type: ignore[attr-defined]
        made.barrier()
        communicator = weakref.ref(made)
        del given, made
        assert there() is not None and communicator() is not None
        gc.collect()
        assert there() is None and communicator() is None


def test_references_stay_as_many(ranks: list[Communicator]) -> None:
    given = np.ones(3, np.float32)

    def counts() -> list[int]:
        return [sys.getrefcount(each) for each in (given, Work, None, calls.USUAL, calls.UNSCALED)]

    def body(rank: Communicator) -> None:
        for _ in range(300):
            rank.all_reduce(given if rank.rank == 0 else np.ones(3, np.float32)).wait(PATIENCE)
        rank.barrier().wait(PATIENCE)

    before = counts()
    assert together(ranks, body) == [None] * 2
    assert all(after <= least + 100 for after, least in zip(counts(), before, strict=True))


def test_no_work_is_made_by_hand(alone: Communicator) -> None:
    for kind in (Work, _collectives.Operation):
        with pytest.raises(TypeError, match="cannot create"):
            kind()
    for group, made in ((0, Work), ("group", Work), (1, int), (1, None)):
        with pytest.raises((TypeError, ValueError)):
            _collectives.Operations(group, made)  # type: ignore[type-var, arg-type]


WORDS: tuple[Any, ...] = (calls.BARRIER, calls.NOTHING, calls.NOTHING, calls.USUAL, calls.UNSCALED)


@pytest.mark.parametrize(
    ("place", "given", "error"),
    [
        (0, "barrier", TypeError),
        (0, 1 << 31, OverflowError),
        (1, None, TypeError),
        (1, (None, 0, 0), TypeError),
        (1, [None, 0, 0, 0], TypeError),
        (1, (None, 0, -1, 0), OverflowError),
        (1, (None, "place", 0, 0), TypeError),
        (2, (None, 0, 0, 0, 0), TypeError),
        (3, calls.UNSCALED, TypeError),
        (3, calls.USUAL._replace(tag=1 << 32), OverflowError),
        (3, calls.USUAL._replace(priority=-(1 << 31) - 1), OverflowError),
        (3, calls.USUAL._replace(timeout_ns=1 << 63), OverflowError),
        (4, calls.USUAL, TypeError),
    ],
)
def test_a_call_of_nonsense_is_refused(alone: Communicator, place: int, given: Any, error: type[Exception]) -> None:
    operations: Any = alone._operations
    words = [*WORDS[:place], given, *WORDS[place + 1 :]]
    with pytest.raises(error):
        operations.start(*words)
    with pytest.raises(TypeError, match="takes 5 arguments, not 6"):
        operations.start(*WORDS, None)
    assert operations.start(*WORDS).operation == "barrier()"


def test_a_closed_communicator_starts_what_has_failed(alone: Communicator) -> None:
    given, there = vector(1.0)
    alone.close(0.0)
    work = alone.all_reduce(given)
    del given
    assert there() is None and work.done()
    with pytest.raises(CollectiveError, match="closed") as caught:
        work.wait()
    assert caught.value.kind == "closed" and str(work.exception()) == str(caught.value)


def test_threads_that_start_and_wait_at_once(ranks: list[Communicator]) -> None:
    """Every thread waits for the works of all; each is waited for by several."""
    rounds, threads = 50, 4

    def body(rank: Communicator) -> int:
        shared: queue.SimpleQueue[Work] = queue.SimpleQueue()
        done: list[int] = []

        def run() -> None:
            for _ in range(rounds):
                work = rank.barrier()
                shared.put(work)
                shared.get().wait(PATIENCE)
                work.wait(PATIENCE)
                done.append(1)

        running = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join(PATIENCE)
        return len(done)

    assert together(ranks, body) == [rounds * threads] * 2


def test_other_threads_run_while_one_waits(ranks: list[Communicator]) -> None:
    """The other rank, a thread of the same interpreter, starts only once this one waits."""
    waits = threading.Event()

    def other() -> None:
        assert waits.wait(PATIENCE)
        ranks[1].barrier().wait(PATIENCE)

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    work = ranks[0].barrier()
    waits.set()
    work.wait(20.0)
    thread.join(PATIENCE)


@contextmanager
def told_while_waiting(action: Callable[[], object]) -> Iterator[None]:
    """A signal's handler does `action` in the main thread while that waits for a Work, and only then."""
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def handle(number: int, frame: FrameType | None) -> None:
        waits = frame is not None and frame.f_code is Work.wait.__code__
        answers.put(waits)
        if waits:
            action()

    def tell() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        while not answers.get(timeout=PATIENCE):  # it came too early
            os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)
    thread.join(PATIENCE)


@pytest.mark.parametrize("seconds", [20.0, None])
def test_a_signal_handler_gets_its_turn_and_the_wait_goes_on(ranks: list[Communicator], seconds: float | None) -> None:
    """The handler starts the other rank's half, without which nothing is ever done."""
    works: list[Work] = []
    work = ranks[0].barrier()
    with told_while_waiting(lambda: works.append(ranks[1].barrier())):
        work.wait(seconds)
    works[0].wait(PATIENCE)


@pytest.mark.parametrize("seconds", [None, 1000.0])
def test_ctrl_c_ends_a_wait_and_not_the_operation(alone: Communicator, seconds: float | None) -> None:
    given, there = vector(1.0)
    work = alone.all_reduce(given)
    del given
    with pytest.raises(KeyboardInterrupt), told_while_waiting(lambda: signal.default_int_handler(signal.SIGINT, None)):
        work.wait(seconds)
    assert not work.done() and there() is not None


def test_a_forked_child_waits_for_nothing_and_ends(ranks: list[Communicator]) -> None:
    pending = ranks[0].barrier()

    def refused() -> bool:
        nonlocal pending
        kinds = []
        for call in (pending.wait, lambda: ranks[0].all_reduce(np.ones(3, np.float32))):
            with pytest.raises(CollectiveError) as caught:
                call()
            kinds.append(caught.value.kind)
        done = pending.done()
        del call, pending
        return done and kinds == ["forked", "forked"]

    assert in_child(refused)
    assert not pending.done()
    ranks[1].barrier().wait(PATIENCE)
    pending.wait(PATIENCE)


def test_a_forked_child_knows_what_was_done_before(ranks: list[Communicator]) -> None:
    seen, unseen = ranks[0].barrier(), ranks[0].barrier()
    ranks[1].barrier()
    ranks[1].barrier().wait(PATIENCE)
    seen.wait(PATIENCE)
    ranks[0].barrier()
    ranks[1].barrier().wait(PATIENCE)

    def known() -> bool:
        seen.wait()
        unseen.wait()
        return seen.exception() is None and unseen.exception() is None

    assert in_child(known)


ENDING = """
import os, socket, sys, threading, time
import numpy as np
from catchment.host import Stream
from catchment.host.collectives import Communicator

silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
silent.bind(("127.0.0.1", 0))
rank = Communicator(Stream(gen=1, workers=2), rank=0, local=("127.0.0.1", 0), switch=silent.getsockname(),
                    port="udp", timeout=1000.0, absent=None)
work = rank.all_reduce(np.ones(700, np.float32))
rank.barrier()
sys.modules["kept"] = rank, work
waits = threading.Event()


class Last:
    "Ends only when the thread has: the interpreter, which is ending, waits for nobody else."

    def __del__(self, exists=os.path.exists, pause=time.sleep):
        while exists(self.thread):
            pause(0.01)


def wait(seconds):
    waits.set()
    work.wait(seconds)


def wait_beside(seconds):
    thread = threading.Thread(target=wait, args=(seconds,), daemon=True)
    thread.start()
    last = sys.modules["last"] = Last()
    last.thread = f"/proc/self/task/{thread.native_id}"
    waits.wait()


"""


@pytest.mark.parametrize("end", ["pass", "rank.close(0.0)", "wait_beside(None)", "wait_beside(500.0)"])
def test_a_program_ends_while_operations_are_under_way(end: str) -> None:
    """It ends also while a thread that nobody waits for waits in the library."""
    run = subprocess.run(
        [sys.executable, "-c", f"{ENDING}{end}\nprint('ends')"],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stdout, run.stderr) == (0, "ends\n", "")
