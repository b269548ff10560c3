"""A rank of the ring over MPTCP of `bench.rails`, in a process of its own.

Its argument is what it is told of the ring, as JSON. Of each line that it reads, a size in bytes and a number of
rounds, it all-reduces so much so often, and prints the seconds of each.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from catchment.host.collectives import RailPolicy, RailSet

PATIENCE = 120.0


def main() -> None:
    """Follow the orders of the input."""
    told = json.loads(sys.argv[1])
    with RailSet.of_job(told, policy=RailPolicy.SINGLE, timeout=PATIENCE) as rank:
        rank.barrier().wait()
        print("ready", flush=True)
        for line in sys.stdin:
            size, rounds = json.loads(line)
            array, times = np.ones(size // 4, np.float32), []
            for _ in range(rounds):
                rank.barrier().wait()
                began = time.perf_counter()
                rank.all_reduce(array, op="mean").wait()
                times.append(time.perf_counter() - began)
            print(json.dumps(times), flush=True)


if __name__ == "__main__":
    main()
