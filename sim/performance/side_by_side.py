"""Points of a sweep in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

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
    told the share that is done.
    """
    outcomes = []
    with ProcessPoolExecutor(min(processes, len(requests)), mp_context=get_context("spawn")) as pool:
        for outcome in pool.map(run, requests):
            outcomes.append(outcome)
            progress(len(outcomes) / len(requests))
    return outcomes
