"""P4SGD: Equations 1 to 3 and Table I from the cycle model (sim/golden/glm_cycles.py), scaling on clusters."""

from __future__ import annotations

from itertools import pairwise

from catchment.sim.golden.glm_cycles import (
    PAPER_WORKLOADS,
    Setting,
    data_parallel_iteration,
    memory,
    micro_batch_iteration,
)
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.figures.claim import Claim, Source
from catchment.sim.performance.glm import GlmTraining, glm_epochs, round_seconds

_INPUT = "1.2 us and 100 Gb/s of an all-reduce, 250 MHz, engines"
_SENDS = "32-bit gradients at 100 Gb/s alone take longer than the paper's whole iteration: docs/measurements/glm.md"


def cluster_of(workers: int) -> Cluster:
    """Workers at one switch, at 100 Gb/s."""
    return Cluster(rack_spine(racks=[[f"w{at}" for at in range(workers)]], spines=0))


def scale_out(data: str, workers: int) -> float:
    """Epochs a second of so many workers by those of one."""
    training = GlmTraining.parse(data)
    alone, many = (glm_epochs(cluster_of(count), training).rounds[0] for count in (1, workers))
    return alone / many


def by_batch(data: str, batch: int) -> float:
    """The throughput of 8 workers with mini-batches of this size by that with 16 samples."""
    small, large = (glm_epochs(cluster_of(8), GlmTraining.parse(data, size)).rounds[0] for size in ("16", str(batch)))
    return small / large


def claims() -> list[Claim]:
    """Ratios of the text, and of Table I."""
    return [*_of_the_text(), *_of_clusters()]


def _of_clusters() -> list[Claim]:
    names = [workload.name for workload in PAPER_WORKLOADS]
    rising = sum(a < b for a, b in pairwise(scale_out(name, 8) for name in names))
    falling = sum(a > b for a, b in pairwise(by_batch(name, 1024) for name in names))
    return [
        Claim("P4SGD", "Figure 8", "an all-reduce of 8 x int32, 8 workers, us", 1.2, 1e6 * round_seconds(cluster_of(8)),
              0.1, Source.SIMULATED, note="ours has fewer clocks in the NIC (15); links and switch are of cosim.md"),
        Claim("P4SGD", "Figure 12", "8 workers by 1, avazu (a million features), B = 64: closely linear", 8.0,
              scale_out("avazu", 8), 0.1, Source.CYCLES),
        Claim("P4SGD", "Figure 12", "sets that gain more from 8 workers than the one with fewer features", 4.0,
              float(rising), 0.0, Source.CYCLES),
        Claim("P4SGD", "Figure 10", "sets that gain less from B = 1024 than the one with fewer features", 4.0,
              float(falling), 0.0, Source.CYCLES),
    ]  # fmt: skip


def _of_the_text() -> list[Claim]:
    by_name = {workload.name: workload for workload in PAPER_WORKLOADS}

    def gain(name: str, batch: int) -> float:
        setting, workload = Setting(workers=4, batch=batch), by_name[name]
        return data_parallel_iteration(workload, setting) / micro_batch_iteration(workload, setting)

    setting, rcv1 = Setting(workers=8, batch=64), by_name["rcv1"]
    data, model = (memory(rcv1, setting, data_parallel=parallel) for parallel in (True, False))
    return [
        Claim(
            "P4SGD", "Table I", "elements sent, data by model parallelism: D / B of rcv1, B = 64", 47236 / 64,
            data.network / model.network, 0.0, Source.CYCLES,
        ),
        Claim(
            "P4SGD", "Table I", "a worker's model, data by model parallelism: M = 8", 8.0, data.model / model.model,
            0.0, Source.CYCLES,
        ),
        Claim("P4SGD", "Figure 9", "data by model parallelism, rcv1, B = 16", 2.0, gain("rcv1", 16), 0.1,
              Source.CYCLES, _INPUT, _SENDS),
        Claim("P4SGD", "Figure 9", "the same, amazon_fashion, B = 16", 4.8, gain("amazon_fashion", 16), 0.1,
              Source.CYCLES, _INPUT, _SENDS),
        Claim("P4SGD", "Figure 9", "the same, amazon_fashion, B = 1024: roughly 1", 1.0, gain("amazon_fashion", 1024),
              0.1, Source.CYCLES, _INPUT, _SENDS),
    ]  # fmt: skip
