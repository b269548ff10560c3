"""Flow mode: collectives as flows at max-min fair rates, for sweeps over thousands of configurations.

There are no frames: a message takes the latency of its way, and its bytes (with the frames' headers and gaps) the rate
of the slowest line; of rings see ring_flow.py, of windows that are too short for that window_flow.py. Losses and
retransmissions are the frame mode's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catchment.controlplane.jobs.tree import Branch
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel, on_wire
from catchment.sim.performance.max_min import Flow
from catchment.sim.performance.planning import depth_of, sums_tree
from catchment.sim.performance.ring_flow import ring_lines, ring_seconds
from catchment.sim.performance.window_flow import Slowest, small_cluster, window_seconds


def _allreduce(model: FlowModel, workers: Sequence[str], size: int) -> float:
    tree = sums_tree(model.cluster, workers, None)
    payload = model.cluster.switch.vector_bytes
    lines = (*model.upwards(tree, workers), *model.downwards(tree, workers))
    latency = model.latency(payload, model.climbs(tree, workers), model.descents(tree, workers))
    fair = model.seconds([Flow(lines, on_wire(size, payload))], latency, payload)
    return max(fair, _windows(model, tree, workers, size, None))


def _luwu(model: FlowModel, workers: Sequence[str], size: int) -> float:
    if "opt" not in model.up:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    tree = sums_tree(model.cluster, workers, "opt")
    payload = model.cluster.switch.vector_bytes
    bytes_ = on_wire(size, payload)
    rise = model.latency(payload, [(*way, model.down["opt"]) for way in model.climbs(tree, workers)])
    fall = model.latency(payload, [(model.up["opt"], *way) for way in model.descents(tree, workers)])
    up = Flow((*model.upwards(tree, workers), model.down["opt"]), bytes_)
    down = Flow((*model.downwards(tree, workers), model.up["opt"]), bytes_)
    fair = model.seconds([up], rise, payload) + model.seconds([down], fall, payload)
    return max(fair, _windows(model, tree, workers, size, "opt"))


def _allreduce_lines(model: FlowModel, workers: Sequence[str]) -> tuple[int, ...]:
    tree = sums_tree(model.cluster, workers, None)
    return (*model.upwards(tree, workers), *model.downwards(tree, workers))


def _luwu_lines(model: FlowModel, workers: Sequence[str]) -> tuple[int, ...]:
    tree = sums_tree(model.cluster, workers, "opt")
    return (*model.upwards(tree, workers), *model.downwards(tree, workers), model.up["opt"], model.down["opt"])


def _windows(model: FlowModel, tree: Sequence[Branch], workers: Sequence[str], size: int, root: str | None) -> float:
    """The time by the stream's window, with the slowest of the tree's lines; 0 where it is wide enough.

    Args:
        root: sums go to this optimizer node, then as many bytes down; None: they go to all hosts.
    """
    payload, depth = model.cluster.switch.vector_bytes, depth_of(tree)
    ways = {
        Slowest(model.slowest(up[:1], down[-1:]), model.slowest(up[1:], down[:-1]))
        for up, down in zip(model.climbs(tree, workers), model.descents(tree, workers), strict=True)
    }
    longest, narrowest = max(ways, key=lambda way: way.host + way.up), max(ways, key=lambda way: max(way.host, way.up))
    own = model.slowest((model.up[root], model.down[root])) if root else longest.host
    window = min(model.slots, model.cluster.switch.slots) if root else model.slots
    slowest = max(narrowest.host, narrowest.up, own)
    if not model.waits(window, payload, depth if root else 2 * depth - 1, slowest, size):
        return 0.0
    fast = min(way.host for way in ways)
    small = small_cluster(model.cluster, depth, [longest, narrowest][: min(depth, 2)], fast, own)
    return window_seconds(small, model.slots, size, root=bool(root))


FLOWS: dict[str, Callable[[FlowModel, Sequence[str], int], float]] = {
    "allreduce": _allreduce, "luwu": _luwu, "ring": ring_seconds,
}  # fmt: skip
"""What flow mode knows: collective -> seconds of one, of so many bytes."""
LINES: dict[str, Callable[[FlowModel, Sequence[str]], tuple[int, ...]]] = {
    "allreduce": _allreduce_lines, "luwu": _luwu_lines, "ring": ring_lines,
}  # fmt: skip
"""The same -> the lines that one loads all the time that it takes."""


def flow_seconds(kind: str, cluster: Cluster, workers: Sequence[str], size: int, slots: int | None = None) -> float:
    """The time of one collective of `FLOWS`; `slots`: of the job, None: what the switch has.

    Raises:
        PerformanceError: it does not fit the cluster.
    """
    return FLOWS[kind](FlowModel.of(cluster, slots), workers, size)
