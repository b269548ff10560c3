"""`make bench-gloo-baselines`: the papers' baselines that a machine without GPUs can run, on gloo.

FSDP2 for LuWu's breakdown of a step (Figure 2b), and data parallelism of a linear model for P4SGD's Figure 13. Two
ranks on two cores, on the loopback interface: nothing limits the links: communication takes what gloo's copying does.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.report import Figure, publish
from catchment.checkout import ROOT
from catchment.sim.golden.glm_cycles import PAPER_WORKLOADS, Network, Pipeline, Setting, steady_iteration
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.glm import all_reduce_seconds

RANKS = 2
BATCH = 64
_ENGINES, _BITS = 8, 4
RCV1 = next(each for each in PAPER_WORKLOADS if each.name == "rcv1")
LUWU = "LuWu's Figure 2b"


def run_ranks() -> list[dict[str, Any]]:
    """What each rank measured.

    Raises:
        SystemExit: a rank failed.
    """
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    with TemporaryDirectory() as folder:
        rest = [str(RANKS), str(Path(folder) / "meet"), str(RCV1.features), str(BATCH)]
        ranks = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "bench.gloo_baselines_member", str(rank), *rest],
                stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
            )
            for rank in range(RANKS)
        ]  # fmt: skip
        told = [rank.communicate()[0] for rank in ranks]
    if any(rank.returncode for rank in ranks):
        raise SystemExit("a rank failed")
    return [json.loads(each) for each in told]


def breakdown(sharded: dict[str, float], alone: dict[str, float]) -> list[Figure]:
    """Shares of a step of FSDP2, of which `alone` is what computing takes without communication."""
    whole = sum(sharded.values())
    computing = min(1.0, (alone["forward"] + alone["backward"]) / whole)
    exposed = max(0.0, 1 - alone["backward"] / sharded["backward"])
    return [
        Figure("FSDP2 on gloo: a step that is forward and backward computing", 100 * computing, "%", LUWU, 23),
        Figure("a step that is the optimizer's", 100 * sharded["optimizer"] / whole, "%", LUWU, 37),
        Figure("backward that waits for communication", 100 * exposed, "%", LUWU, 17),
    ]


def linear(seconds: float) -> Figure:
    """Gloo's iteration beside that of P4SGD's hardware with as many workers."""
    cluster = Cluster(rack_spine(racks=[[f"w{at}" for at in range(RANKS)]], spines=0))
    setting = Setting(RANKS, _ENGINES, _BITS, BATCH)
    ours = steady_iteration(RCV1, setting, Pipeline(), Network(all_reduce_seconds(cluster), math.inf))
    what = f"rcv1's size, B = {BATCH}, {RANKS} ranks: an iteration of gloo's data parallel, dense floats"
    return Figure(what, 1e6 * seconds, "us", "P4SGD's hardware, cycle model", 1e6 * ours)


def main() -> None:
    """Measure; write build/bench/gloo-baselines.json."""
    first = run_ranks()[0]
    publish("gloo-baselines", [*breakdown(first["sharded"], first["alone"]), linear(first["iteration"])])


if __name__ == "__main__":
    main()
