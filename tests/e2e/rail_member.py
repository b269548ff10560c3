"""Not a test: a rank of a job on several rails; `rail_member.py TASK` (a file of JSON).

It all-reduces one array after the other, says "started" after the first, and checks every bit of each result. It ends
with all others after an operation before which rank 0 has seen the task's file `stop`, and prints a line of JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from catchment.host.collectives import CollectiveError, Communicator
from catchment.sim.golden.collectives import total
from catchment.wire.generated.constants import DataType


def values(seed: int, number: int, rank: int, elements: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Other ones for each operation and rank, over many magnitudes."""
    draw = np.random.default_rng((seed, number % 8, rank))
    return (draw.standard_normal(elements) * 2.0 ** draw.integers(-12, 12, elements)).astype(np.float32)


def run(ranks: Communicator, task: dict[str, Any]) -> dict[str, Any]:
    """How many operations there were, and which were wrong."""
    stop, wrong, number, over = Path(task["stop"]), [], 0, False
    shape = {"lanes": ranks.stream.lanes, "slots": ranks.stream.slots}
    everybody = range(ranks.size)
    wanted = [
        total([values(task["seed"], n, rank, task["elements"]) for rank in everybody], DataType.FP32, **shape)
        for n in range(8)
    ]
    while not over:
        array = values(task["seed"], number, ranks.rank, task["elements"])
        ending = np.full(1, ranks.rank == 0 and stop.exists(), np.int32)
        works = [ranks.all_reduce(array), ranks.all_reduce(ending)]
        for work in works:
            work.wait()
        if not np.array_equal(array.view(np.uint32), wanted[number % 8].view(np.uint32)):
            wrong.append(number)
        if number == 0:
            print("started", flush=True)
        over = bool(ending[0])
        number += 1
    return {"operations": number, "wrong": wrong}


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        with Communicator.of_job(task["description"], timeout=task["timeout"], absent=None) as ranks:
            said = run(ranks, task)
    except CollectiveError as error:
        said = {"error": str(error), "kind": error.kind}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
