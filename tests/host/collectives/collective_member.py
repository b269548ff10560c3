"""Not a test: a rank as a process of its own; `collective_member.py TASK` (JSON) prints one line of JSON.

Every rank draws the same operations and everybody's arrays from the task's seed, so each can make all results anew.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.host.collectives import Block, CollectiveError, Communicator, Delayed, Fixed, Whole, Work
from catchment.sim.golden import collectives as golden
from catchment.sim.golden.formats import bf16_words
from catchment.wire.generated.constants import DataType

KINDS = ("all_reduce", "all_reduce", "reduce", "broadcast", "barrier", "reduce_scatter", "all_gather")
TYPES = (DataType.FP32, DataType.FP16, DataType.BF16, DataType.INT32)


SPECIAL = (np.nan, np.inf, -np.inf, 3.3e38, -2.0e38, 1.0e-45, -1.0e-41, 6.0e-8)


def numbers(rng: np.random.Generator, dtype: DataType, size: int, special: int = 0) -> NDArray[Any]:
    """Elements of very different magnitude; `special` of them are not finite, huge or denormal."""
    if dtype == DataType.INT32:
        return rng.integers(-(1 << 31), 1 << 31, size, dtype=np.int32)
    values = (rng.standard_normal(size) * 10.0 ** rng.integers(-6, 4, size)).astype(np.float32)
    if size and special:
        values[rng.integers(0, size, special)] = rng.choice(SPECIAL, special)
    if dtype == DataType.FP16:
        with np.errstate(over="ignore"):
            return values.astype(np.float16)
    return bf16_words(values) if dtype == DataType.BF16 else values


@dataclass
class Step:
    """One operation, and what this rank's array has to be afterwards."""

    name: str
    result: NDArray[Any]
    wanted: NDArray[Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def step(task: Mapping[str, Any], number: int) -> Step:
    """Operation `number` as this rank calls it."""
    description = task["description"]
    rank, ranks = description["wid"], description["sums"]["workers"]
    shape = {"lanes": description["sums"]["lanes"], "slots": description["sums"]["slots"]}
    draw = random.Random(f"{task['seed']}:{number}")
    # Equal arrays need the same E, which every rank guesses right.
    alike = draw.random() < 0.4
    arrays = [np.random.default_rng((task["seed"], number, 0 if alike else r)) for r in range(ranks)]
    kind = draw.choice(KINDS)
    options: dict[str, Any] = {"priority": draw.choice((0, 0, 0, 1, 5)), "tag": draw.randrange(1 << 32)}
    size = draw.choice((0, 1, draw.randrange(1, 200), draw.randrange(1, task["most"])))
    if kind == "barrier":
        return Step(kind, np.zeros(0), np.zeros(0), (), options)
    root = draw.randrange(ranks)
    if kind == "broadcast":
        everyone = [rng.integers(0, 256, size, dtype=np.uint8) for rng in arrays]
        return Step(kind, everyone[rank], everyone[root].copy(), (everyone[rank], root), options)
    if kind == "all_gather":
        everyone = [rng.integers(0, 256, size, dtype=np.uint8) for rng in arrays]
        out = np.zeros(size * ranks, np.uint8)
        own = everyone[rank]
        if draw.random() < 0.5:
            own = out[rank * size : (rank + 1) * size]
            own[:] = everyone[rank]
        return Step(kind, out, np.concatenate(everyone), (own, out), options)
    dtype = draw.choice(TYPES)
    op = draw.choice(("sum", "sum", "max") if dtype == DataType.INT32 else ("sum", "sum", "mean", "max"))
    exponent = None
    scaling: Any = Block()
    if draw.random() < 0.4:
        exponent = draw.randrange(-3, 12)
        scaling = Fixed(exponent)
    elif draw.random() < 0.2:
        scaling = Delayed(f"step {number}")  # its first operation negotiates
    elif draw.random() < 0.3:
        scaling = Whole()
    packed = description["sums"].get("packed", False) and draw.random() < 0.4
    options |= {"op": op, "scaling": replace(scaling, packed=packed)}
    special = draw.choice((0, 0, 1, 5))
    everyone = [numbers(rng, dtype, size * (ranks if kind == "reduce_scatter" else 1), special) for rng in arrays]
    whole = isinstance(scaling, Whole)
    result = golden.total(everyone, dtype, op=op, exponent=exponent, whole=whole, packed=packed, **shape)
    own = everyone[rank]
    if kind == "reduce_scatter":
        out = np.zeros(size, own.dtype)
        return Step(kind, out, result[rank * size : (rank + 1) * size], (own, out), options)
    out = own if draw.random() < 0.5 else np.zeros_like(own)
    given = None if out is own else out
    if kind == "reduce":
        wanted = result if rank == root else out.copy()
        return Step(kind, out, wanted, (own, root, given), options)
    return Step(kind, out, result, (own, given), options)


def run(ranks: Communicator, task: Mapping[str, Any]) -> list[str]:
    """All operations, some at once; returns what was wrong."""
    draw = random.Random(f"{task['seed']}:{ranks.rank}")
    steps = [step(task, number) for number in range(task["operations"])]
    works: list[Work] = []
    for one in steps:
        works.append(getattr(ranks, one.name)(*one.arguments, **one.options))
        if draw.random() < 0.3:
            draw.choice(works).wait()
    for work in works:
        work.wait()
    wrong = []
    for number, one in enumerate(steps):
        differing = np.flatnonzero(one.result.view(np.uint8) != one.wanted.view(np.uint8))
        if differing.size:
            wrong.append(
                f"operation {number}, {works[number].operation}, {one.options}: {differing.size} of "
                f"{one.wanted.nbytes} bytes differ, first {differing[0]}"
            )
    return wrong


def forever(ranks: Communicator, task: Mapping[str, Any]) -> list[str]:
    """One operation after the other, for tests that break something meanwhile."""
    array = np.zeros(task["most"], np.int32)
    ranks.barrier(timeout=240.0).wait()  # the others may start late
    for number in range(task["operations"]):
        array[:] = np.arange(task["most"], dtype=np.int32) * (ranks.rank + 1) + number
        ranks.all_reduce(array).wait()
        if number == 0:
            print("started", flush=True)
        total = ranks.size * (ranks.size + 1) // 2
        wanted = np.arange(task["most"], dtype=np.int32) * total + ranks.size * number
        if not np.array_equal(array, wanted):
            return [f"operation {number}: {np.flatnonzero(array != wanted).size} elements differ"]
    return []


def main() -> None:
    task = json.loads(sys.argv[1])
    result: dict[str, Any] = {}
    try:
        description, port = task["description"], task["port"]
        with Communicator.of_job(description, port=port, timeout=task["timeout"], absent=None) as ranks:
            result["wrong"] = (forever if task.get("forever") else run)(ranks, task)
            result["stats"] = ranks.stats()
    except CollectiveError as error:
        result |= {"error": str(error), "kind": error.kind, "peers": error.peers, "seq": error.seq}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
