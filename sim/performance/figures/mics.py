"""MiCS: volumes of partition groups, and bounds that follow from them.

Symbols are the paper's: n devices, p in a partition group, k in a node, s micro-steps; bandwidths in GB/s.
"""

from __future__ import annotations

from catchment.sim.performance.figures.claim import Claim, Source
from catchment.sim.performance.partition_gather import sent_between_nodes

_NODE_BANDWIDTH, _NETWORK_BANDWIDTH = 128.0, 11.0
_BANDWIDTHS = "128 and 11 GB/s"
_COUNTED = "frames with data on a node's link, rings of frames of 1 KiB"


def hierarchical_cut(p: int, k: int) -> float:
    """The share of the traffic between nodes that a hierarchical gather saves: 1 - (p - k)/(p - 1)."""
    return 1 - (p - k) / (p - 1)


def simulated_cut(p: int, k: int) -> float:
    """The same, of frames with data that the simulator counts on a node's link."""
    one, two = (sent_between_nodes(p, k, staged=staged).data for staged in (False, True))
    return 1 - two / one


def two_hop_gain(s: int) -> float:
    """What two-hop synchronization gains at most over an all-reduce in each of s micro-steps: 2 s/(s + 2)."""
    return 2 * s / (s + 2)


def state_bytes(parameters: float) -> float:
    """Bytes of parameters, gradients and Adam's states in mixed precision: 16 each."""
    return (2 + 2 + 3 * 4) * parameters


def claims() -> list[Claim]:
    """What sections 3 and 5 say of volumes and bounds."""
    formula = Source.FORMULA
    return [
        Claim("MiCS", "section 3.2", "gather at the node's by at the network's bandwidth", 11.6,
              _NODE_BANDWIDTH / _NETWORK_BANDWIDTH, 0.01, formula, _BANDWIDTHS),
        Claim("MiCS", "section 3.2", "the most time that saves, %", 91.3,
              100 * (1 - _NETWORK_BANDWIDTH / _NODE_BANDWIDTH), 0.01, formula, _BANDWIDTHS),
        Claim("MiCS", "section 3.3", "less between nodes, p = 16, k = 8, %", 46.6, 100 * simulated_cut(16, 8), 0.005,
              Source.SIMULATED, note=_COUNTED),
        Claim("MiCS", "section 3.3", "less between nodes, p = 64, k = 8, %", 11.1, 100 * simulated_cut(64, 8), 0.005,
              Source.SIMULATED, note=_COUNTED),
        Claim("MiCS", "section 3.4", "two-hop synchronization, s = 4", 4 / 3, two_hop_gain(4), 0.0, formula,
              note="with equal bandwidths; at s = 1 it is 2/3, a loss"),
        Claim("MiCS", "section 3.2", "states of 10 billion parameters, GB", 160.0, state_bytes(10e9) / 1e9, 0.0,
              formula),
    ]  # fmt: skip
