"""Points of a sweep in several processes."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

from catchment.sim.performance.errors import PerformanceError

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


def each(
    run: Callable[[Request], Outcome],
    requests: Sequence[Request],
    processes: int,
    progress: Callable[[float], None],
) -> list[Outcome]:
    """What `run`, a function of a module, makes of each request in so many processes.

    The processes are fresh ones: a fork of a program with threads, as gRPC's, dies of what they held. `progress` is
    told the share that is done. An error of a point, or Ctrl-C, ends the others at once.

    Raises:
        PerformanceError: a process was killed.
    """
    outcomes: list[Outcome] = []
    before = active_children()
    with ProcessPoolExecutor(min(processes, len(requests)), mp_context=get_context("spawn")) as pool:
        try:
            with _without_ctrl_c():
                futures = [pool.submit(run, request) for request in requests]
            for future in futures:
                outcomes.append(future.result())
                progress(len(outcomes) / len(requests))
        except BrokenProcessPool:
            raise PerformanceError(
                f"a process of the sweep was killed when {len(outcomes)} of {len(requests)} points were done, as the "
                "kernel does where memory ends: see dmesg, and give fewer --processes"
            ) from None
        except BaseException:
            for process in active_children():
                if process not in before:
                    process.terminate()
            raise
    return outcomes


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes in the block that Ctrl-C does not reach: it is for this one, and they have nothing to say."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
