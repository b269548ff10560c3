"""Several rails: what each costs, and how the project's own balancer splits a message over them.

The split is that of docs/explanation/rails.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from catchment.host.collectives.rail_split import MOST_RAILS, RailCost, RailShare, split
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow import flow_seconds
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.network import Network
from catchment.sim.performance.rounds import Rounds, Splitting
from catchment.wire.generated.constants import LANE_BYTES

NEZHA = "nezha"
"""The workload that uses all rails."""
RAIL_KINDS = {"switch": "allreduce", "ring": "ring"}
"""What adds up on a rail -> the collective."""
_PROBE = 1 << 24
"""Bytes of the message that gives a rail's rate."""
_MOST_NS = (1 << 32) - 1
_BITS_A_MEGABIT = 8 * PICOS_PER_SECOND // 10**6


def rail_clusters(cluster: Cluster) -> list[Cluster]:
    """The cluster as each rail has it.

    Raises:
        PerformanceError: it has no rails, or more than the balancer splits over.
    """
    if not 1 <= len(cluster.rails) <= MOST_RAILS:
        raise PerformanceError(
            f"{NEZHA} needs 1 to {MOST_RAILS} rails, the cluster file's `rails` has {len(cluster.rails)}: give a list, "
            "as [{name: a, host: 100gbps}, {name: b, host: 25gbps, by: ring}]"
        )
    topology = cluster.topology
    if any(host.rate for host in topology.hosts.values()) or any(link.rate for link in topology.links):
        raise PerformanceError("hosts and links have the rates of their `rails`: give no others")
    return [replace(cluster, links=rail.links) for rail in cluster.rails]


def rail_networks(cluster: Cluster, seed: int) -> list[Network]:
    """A network for each rail, all in one simulation; errors as of `rail_clusters`."""
    first, *others = rail_clusters(cluster)
    network = Network(first, seed=seed)
    return [network, *(Network(other, simulation=network.simulation) for other in others)]


def rail_costs(cluster: Cluster, workers: Sequence[str], slots: int | None = None) -> list[RailCost]:
    """What each rail costs alone: the balancer's figures after it has timed a short and a long message on each.

    Args:
        slots: of the job; None: what the switch has.

    Raises:
        PerformanceError: a rail on which flow mode cannot say that.
    """
    costs = []
    for rail, own in zip(cluster.rails, rail_clusters(cluster), strict=True):
        start, end = (_seconds(own, rail.by, workers, size, slots) for size in (1, _PROBE))
        rate = (_PROBE - 1) / (end - start) / 1e3
        nominal = max(1, _BITS_A_MEGABIT // rail.links.host_byte)
        starts = round(1e9 * start + rail.start / 1e3)
        if starts > _MOST_NS:
            raise PerformanceError(
                f"rail {rail.name}: a short message takes {starts / 1e9:g} s, the balancer knows {_MOST_NS / 1e9:.2g}"
            )
        costs.append(RailCost(starts, round(rate), nominal))
    return costs


def _seconds(cluster: Cluster, by: str, workers: Sequence[str], size: int, slots: int | None) -> float:
    return flow_seconds(RAIL_KINDS[by], cluster, workers, size, slots)


def rail_shares(costs: Sequence[RailCost], size: int, splitting: Splitting) -> list[RailShare]:
    """How a message of `size` bytes is split."""
    together = [splitting.together * more // 1000 for more in range(len(costs))]
    return split(costs, together, splitting.policy, -(-size // LANE_BYTES))


def share_bytes(share: RailShare) -> int:
    """Bytes of a share."""
    return share.elements * LANE_BYTES


def nezha_seconds(cluster: Cluster, workers: Sequence[str], rounds: Rounds) -> float:
    """The time of a message that is split over rails, in flow mode; errors as of `rail_costs`."""
    sizes: dict[int, int] = {}
    for share in rail_shares(rail_costs(cluster, workers, rounds.slots), rounds.size, rounds.splitting):
        sizes[share.rail] = sizes.get(share.rail, 0) + share_bytes(share)
    clusters = rail_clusters(cluster)
    ends = (
        cluster.rails[at].start / PICOS_PER_SECOND
        + _seconds(clusters[at], cluster.rails[at].by, workers, size, rounds.slots)
        for at, size in sizes.items()
    )
    return max(ends) + rounds.splitting.together * (len(sizes) - 1) / PICOS_PER_SECOND
