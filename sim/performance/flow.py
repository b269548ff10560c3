"""Flow mode: collectives as flows at max-min fair rates, for sweeps over thousands of configurations.

There are no frames: a message takes the latency of its way, and its bytes (with the frames' headers and gaps) the rate
of the slowest line; of rings see ring_flow.py, of windows that are too short for that window_flow.py. Losses and
retransmissions are the frame mode's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel, on_wire
from catchment.sim.performance.max_min import Flow
from catchment.sim.performance.planning import depth_of, sums_tree
from catchment.sim.performance.ring_flow import ring_lines, ring_seconds
from catchment.sim.performance.window_flow import small_cluster, window_seconds


def _allreduce(model: FlowModel, workers: Sequence[str], size: int) -> float:
    tree = sums_tree(model.cluster, workers, None)
    payload = model.cluster.switch.vector_bytes
    lines = (*model.upwards(tree, workers), *model.downwards(tree, workers))
    latency = model.latency(2 * depth_of(tree) - 1, payload, workers)
    fair = model.seconds([Flow(lines, on_wire(size, payload))], latency, payload)
    return max(fair, _windows(model, depth_of(tree), lines, size, root=False))


def _luwu(model: FlowModel, workers: Sequence[str], size: int) -> float:
    if "opt" not in model.up:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    tree = sums_tree(model.cluster, workers, "opt")
    payload = model.cluster.switch.vector_bytes
    bytes_, latency = on_wire(size, payload), model.latency(depth_of(tree), payload, [*workers, "opt"])
    up = Flow((*model.upwards(tree, workers), model.down["opt"]), bytes_)
    down = Flow((*model.downwards(tree, workers), model.up["opt"]), bytes_)
    fair = model.seconds([up], latency, payload) + model.seconds([down], latency, payload)
    return max(fair, _windows(model, depth_of(tree), (*up.lines, *down.lines), size, root=True))


def _allreduce_lines(model: FlowModel, workers: Sequence[str]) -> tuple[int, ...]:
    tree = sums_tree(model.cluster, workers, None)
    return (*model.upwards(tree, workers), *model.downwards(tree, workers))


def _luwu_lines(model: FlowModel, workers: Sequence[str]) -> tuple[int, ...]:
    tree = sums_tree(model.cluster, workers, "opt")
    return (*model.upwards(tree, workers), *model.downwards(tree, workers), model.up["opt"], model.down["opt"])


def _windows(model: FlowModel, depth: int, lines: Sequence[int], size: int, *, root: bool) -> float:
    """The time by the stream's window, with the slowest of these lines; 0 where it is wide enough."""
    payload, hosts = model.cluster.switch.vector_bytes, 2 * len(model.up)
    to_hosts = max(model.byte[line] for line in lines if line < hosts)
    between = max((model.byte[line] for line in lines if line >= hosts), default=to_hosts)
    window = min(model.slots, model.cluster.switch.slots) if root else model.slots
    if not model.waits(window, payload, depth if root else 2 * depth - 1, max(to_hosts, between), size):
        return 0.0
    small = small_cluster(model.cluster, depth, round(to_hosts), round(between))
    return window_seconds(small, model.slots, size, root=root)


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
