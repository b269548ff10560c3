"""How near the in-network run must be to the same training in one process, and whether it is.

Exact part: with the sums made in the wire's integers (sim.demo.twin) every loss of every worker has the same bits.

Float part: each element of a summed gradient differs from the exact sum of the workers' fp32 gradients by at most
W * 2^(E+h-31) from quantization (half a unit for each worker) plus fp32 rounding; tests/sim/demo shows it step by
step. Adam divides by the gradient's own size, so elements that are nothing but rounding (a key's bias, for one) move
by up to the learning rate in either run, and trajectories part slowly, as they do between two orders of summation in
any data-parallel system. So whole runs are compared by their mean loss, within TOLERANCE nats per byte.
"""

from __future__ import annotations

from sim.demo.options import DemoOptions
from sim.demo.outcome import Comparison, PassLosses

TOLERANCE = 0.02


def compare(options: DemoOptions, network: PassLosses, reference: PassLosses, exact: PassLosses) -> Comparison:
    """Compare all passes of a run with the float reference, and the twin's passes bit by bit."""
    passes = range(len(options.passes))
    gaps = [abs(network.mean(index) - reference.mean(index)) for index in passes]
    compared = sorted(exact.losses)
    return Comparison(
        largest_gap=max(gaps),
        final_gap=gaps[-1],
        tolerance=TOLERANCE,
        exact_passes=len(compared),
        exact_equal=all(network.losses[index] == exact.losses[index] for index in compared),
    )
