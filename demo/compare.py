"""How near the in-network run must be to the same training in one process, and whether it is.

Exact part: with the sums made in the wire's integers (sim/training/twin.py) every loss of every worker in every pass
has the same bits, and so have the trained weights.

Float part: each element of a summed gradient differs from the exact sum of the workers' fp32 gradients by at most
W * 2^(E+h-31) from quantization (half a unit for each worker) plus fp32 rounding; tests/demo shows it step by
step. From there trajectories part as they do between two orders of float summation in any data-parallel system: a
last bit of a master weight now and then falls on the other side of a bf16 rounding, which moves what the workers
compute with by 2^-9 of the weight. So whole runs are compared by the mean loss of each pass, within TOLERANCE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from catchment.demo.outcome import Comparison, PassLosses
from catchment.host.layers import WireType
from catchment.sim.training.options import TrainingOptions

TOLERANCE = {WireType.BF16: 0.05, WireType.FP32: 0.005}
"""Largest difference of the workers' mean loss in any pass, nats per byte, by what parameters travel as."""


@dataclass(frozen=True, slots=True)
class SingleProcess:
    """The two trainings in one process: losses of both, sha256 of the exact one's weights, seconds for both."""

    float_sums: PassLosses
    exact_sums: PassLosses
    exact_digest: str
    seconds: float


def compare(options: TrainingOptions, network: PassLosses, digest: str, beside: SingleProcess) -> Comparison:
    """Compare all passes of a run, whose weights have `digest`, with both trainings in one process.

    Passes whose losses were lost in an ended run are left out; every later pass depends on them.
    """
    lost = network.missing(len(options.passes))
    passes = [index for index in range(len(options.passes)) if index not in lost]
    gaps = [_gap(network.mean(index), beside.float_sums.mean(index)) for index in passes]
    return Comparison(
        largest_gap=max(gaps),
        final_gap=gaps[-1],
        tolerance=TOLERANCE[options.wire_type],
        equal_passes=sum(_equal(network.losses[index], beside.exact_sums.losses[index]) for index in passes),
        passes=len(passes),
        equal_weights=digest == beside.exact_digest,
    )


def _gap(one: float, other: float) -> float:
    """How far apart two losses are; infinity if only one of them has left the finite numbers."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    gap = abs(one - other)
    return math.inf if math.isnan(gap) else gap


def _equal(ones: Mapping[int, float], others: Mapping[int, float]) -> bool:
    """Whether all workers' losses of a pass are equal; NaN equals NaN."""
    return ones.keys() == others.keys() and all(_gap(ones[worker], others[worker]) == 0 for worker in ones)
