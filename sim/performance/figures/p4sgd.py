"""P4SGD: Equations 1 to 3 and Table I, from the cycle model (sim/golden/glm_cycles.py)."""

from __future__ import annotations

from catchment.sim.golden.glm_cycles import (
    PAPER_WORKLOADS,
    Setting,
    data_parallel_iteration,
    memory,
    micro_batch_iteration,
)
from catchment.sim.performance.figures.claim import Claim, Source

_INPUT = "1.2 us and 100 Gb/s of an all-reduce, 250 MHz, engines"
_SENDS = "32-bit gradients at 100 Gb/s alone take longer than the paper's whole iteration: docs/measurements/glm.md"


def claims() -> list[Claim]:
    """Ratios of the text, and of Table I."""
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
