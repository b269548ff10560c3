"""Ranks with several rails, on switches of this machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from collective_lab import together

from catchment.host.collectives import Communicator, RailPolicy, RailSet
from catchment.sim.lab import rail_lab
from catchment.sim.lab.shm_lab import ShmLab

LANES = 256
RANKS = 3
SLOTS = 32
NAMES = [f"w{rank}" for rank in range(RANKS)]
GBIT = 10**9


@contextmanager
def deployed(
    labs: Sequence[ShmLab], rates: Sequence[int], *, may_fail: bool = True, packed: bool = False, tags: bool = False
) -> Iterator[dict[str, dict[str, Any]]]:
    """A job on every switch, and what each member is told of the group; the rails are a, b, ..."""
    by_name = dict(zip("abc", labs, strict=False))
    shape = {"slots": SLOTS, "may_fail": may_fail, "packed": packed, "tags": tags}
    with rail_lab.deployed(by_name, NAMES, rates, **shape) as descriptions:  # type: ignore[arg-type]
        yield descriptions


@contextmanager
def rail_sets(
    labs: Sequence[ShmLab],
    *,
    policy: RailPolicy | Sequence[RailPolicy] = RailPolicy.WATERFILL,
    rates: Sequence[int] | None = None,
    may_fail: bool = True,
    packed: bool = False,
    tags: bool = False,
    **options: Any,
) -> Iterator[list[RailSet]]:
    """All ranks in this process; the jobs end with them."""
    policies = [policy] * RANKS if isinstance(policy, RailPolicy) else policy
    with ExitStack() as exits:
        descriptions = exits.enter_context(
            deployed(labs, rates or [GBIT] * len(labs), may_fail=may_fail, packed=packed, tags=tags)
        )
        yield [
            exits.enter_context(RailSet.of_job(descriptions[name], policy=one, **{"timeout": 60.0, **options}))
            for name, one in zip(NAMES, policies, strict=True)
        ]


def values(rng: random.Random, rank: int, elements: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Different on each rank, over many magnitudes."""
    numbers = np.random.default_rng([rng.getrandbits(32), rank])
    return (numbers.normal(size=elements) * 2.0 ** numbers.integers(-20, 20, elements)).astype(np.float32)


def all_reduced(ranks: Sequence[Communicator], rng: random.Random, elements: int) -> list[Any]:
    """One operation of every rank; the exceptions."""
    arrays = [values(rng, rank, elements) for rank in range(RANKS)]
    return together(ranks, lambda rank: rank.all_reduce(arrays[rank.rank]).wait())
