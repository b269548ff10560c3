"""Plays the points of bench/performance_points.py in the performance simulator."""

from __future__ import annotations

from bench.performance_points import DATA, Played, Point
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.models import LinkModel, SwitchModel
from catchment.sim.performance.network import Network, frames_by_type
from catchment.sim.performance.workload import Action, Workload
from catchment.sim.world import Faults
from catchment.wire.generated.constants import LANE_BYTES, PacketType

_QUIET = 20_000_000  # ps


def play_simulated(point: Point) -> Played:
    """Play a point in frame mode."""
    topology = rack_spine(racks=point.racks, spines=len(point.workers) > 1, above=["opt"])
    cluster = Cluster(
        topology, LinkModel(faults=Faults(loss=point.loss)), SwitchModel(lanes=point.vector_bytes // LANE_BYTES)
    )
    network = Network(cluster, seed=point.seed)
    simulation = network.simulation
    up = network.reduce(point.names, "opt")
    down = network.broadcast("opt", point.names)
    if point.lost is not None:
        line = network.host_lines[point.lost.host][0 if point.lost.up else 1]
        simulation.lose(line, kind=int(point.lost.kind), skip=point.lost.skip, count=1)
    workload = Workload()
    began = workload.add(Action.DELAY, amount=_QUIET)
    _, sums = workload.transfer(up, point.size, [began])
    later = workload.add(Action.DELAY, amount=_QUIET, after=sums)
    _, copies = workload.transfer(down, point.size, [later])
    times = workload.run(network)[:, 1]
    frames = frames_by_type(network.line_counts())
    return Played(
        float(times[sums].max() - times[began]) / 1000, float(times[copies].max() - times[later]) / 1000,
        {kind.name: frames.get(kind.name, 0) for kind in DATA}, frames[PacketType.HB.name],
    )  # fmt: skip
