"""Training steps of systems, as what every rank does: data parallelism, ZeRO-3, MiCS, LuWu and COARSE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from catchment.host.proxy.dual import DualCosts, DualPlan, dual_plan
from catchment.sim.performance.cluster import Cluster, Node
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.run import workers_of
from catchment.sim.performance.steps.graph import Builder, Collective, Trace
from catchment.sim.performance.steps.ranks import partition_groups, rank_count, rank_nodes, replication_groups
from catchment.sim.performance.steps.transformer import HALF, STATES, Transformer

_MEMORY_RATE = 1.5e12
"""Bytes a second of a GPU's memory: an optimizer's step is bound by it."""

MOST_PASSES = 200_000
"""Layers of all micro-steps of a step: each is several tasks, of each rank."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is trained, and how.

    Attributes:
        micro_steps: forward and backward passes before the optimizer's step.
        group: of MiCS, ranks that hold a copy of the states together.
    """

    model: Transformer = field(default_factory=Transformer)
    micro_steps: int = 1
    group: int = 8

    def __post_init__(self) -> None:
        if self.micro_steps < 1 or self.group < 1:
            raise PerformanceError("a step needs a micro-step, and a partition group a rank")

    def check_size(self) -> None:
        """See that a computer has room for what a rank does.

        Raises:
            PerformanceError: there are too many passes.
        """
        if self.micro_steps * self.model.layers > MOST_PASSES:
            raise PerformanceError(
                f"{self.micro_steps} micro-steps of {self.model.layers} layers: a step has {MOST_PASSES} passes of "
                "layers at most, give fewer `micro_steps` or `layers`"
            )


def _passes(node: Node, model: Transformer) -> tuple[float, float]:
    """Seconds of a layer's forward and backward pass on a node's GPU."""
    return model.forward_flops / node.flops, model.backward_flops / node.flops


def _check_memory(cluster: Cluster, model: Transformer, states: float, what: str) -> None:
    needed = states + model.activation_bytes + 4 * model.layer_bytes
    host = min(workers_of(cluster), key=lambda name: cluster.node_of(name).memory)
    memory = cluster.node_of(host).memory
    if needed > memory:
        gib = 2**30
        raise PerformanceError(
            f"{what} of {_digits(model.parameters / 1e9)} billion parameters needs {_digits(needed / gib)} GiB a GPU, "
            f"{_digits((needed - memory) / gib)} more than the `memory` of {host}"
        )


def _digits(number: float) -> str:
    """A number with one digit behind the point, or three digits of what is far from 1."""
    return f"{number:.1f}" if 0.1 <= number < 1e6 else f"{number:.3g}"


def ddp(cluster: Cluster, step: Step, rank: int) -> Trace:
    """Every rank has all states; a layer's gradients are all-reduced while earlier layers go backward."""
    model = step.model
    _check_memory(cluster, model, STATES * model.parameters, "data parallelism")
    forward, backward = _passes(rank_nodes(cluster)[rank], model)
    tasks, sums = Builder(), []
    last: tuple[int, ...] = ()
    for micro in range(step.micro_steps):
        for layer in range(model.layers):
            last = (tasks.compute(f"forward {layer}", forward, *last),)
        for layer in reversed(range(model.layers)):
            last = (tasks.compute(f"backward {layer}", backward, *last),)
            if micro == step.micro_steps - 1:
                sums.append(tasks.collective(Collective.ALL_REDUCE, f"gradients {layer}", model.layer_bytes, *last))
    tasks.compute("optimizer", STATES * model.parameters / _MEMORY_RATE, *sums)
    return Trace(rank, tuple(tasks))


def _sharded(cluster: Cluster, step: Step, rank: int, size: int) -> Trace:
    """Layers are gathered before each pass and gradients scattered behind it, in a group; then summed across groups."""
    model, count = step.model, rank_count(cluster)
    partitions, replications = partition_groups(count, size), replication_groups(count, size)
    ranks, across = partitions[rank // size], replications[rank % size]
    group, replicas = f"partition{rank // size}", f"replicas{rank % size}"
    _check_memory(cluster, model, STATES * model.parameters / len(ranks), f"states in groups of {len(ranks)}")
    forward, backward = _passes(rank_nodes(cluster)[rank], model)
    tasks, scattered = Builder(), []
    last: tuple[int, ...] = ()
    for _ in range(step.micro_steps):
        for backwards in (False, True):
            order = range(model.layers)
            begun: list[tuple[int, ...]] = [last, last]
            for layer in reversed(order) if backwards else order:
                # Two layers are gathered ahead of the one that computes.
                gathered = tasks.collective(
                    Collective.ALL_GATHER, f"parameters {layer}", model.layer_bytes, *begun[-2], group=group
                )
                what, seconds = ("backward", backward) if backwards else ("forward", forward)
                last = (tasks.compute(f"{what} {layer}", seconds, gathered, *last),)
                begun.append(last)
                if backwards:
                    scattered.append(
                        tasks.collective(
                            Collective.REDUCE_SCATTER, f"gradients {layer}", model.layer_bytes, *last, group=group
                        )
                    )
    if len(across) > 1:
        shard = HALF * model.parameters // len(ranks)
        scattered = [tasks.collective(Collective.ALL_REDUCE, "replicas", shard, *scattered, group=replicas)]
    tasks.compute("optimizer", STATES * model.parameters / len(ranks) / _MEMORY_RATE, *scattered)
    groups = {group: ranks, replicas: across}
    return Trace(rank, tuple(tasks), groups, {group: partitions, replicas: replications})


def zero3(cluster: Cluster, step: Step, rank: int) -> Trace:
    """ZeRO-3: states are shared out over all ranks."""
    return _sharded(cluster, step, rank, rank_count(cluster))


def mics(cluster: Cluster, step: Step, rank: int) -> Trace:
    """MiCS: states are shared out over groups of neighbours; shards of equal place are summed at the step's end."""
    count = rank_count(cluster)
    if count % step.group:
        raise PerformanceError(f"{count} ranks are no whole number of partition groups of {step.group}")
    return _sharded(cluster, step, rank, step.group)


def luwu(cluster: Cluster, step: Step, rank: int) -> Trace:
    """LuWu: layers come from the optimizer node and gradients go there, in switches; both ways at a time."""
    model = step.model
    if "opt" not in cluster.topology.hosts:
        raise PerformanceError("LuWu needs an optimizer node: a host `opt` in the topology, or `fabric.optimizers: 1`")
    _check_memory(cluster, model, 0, "LuWu")
    forward, backward = _passes(rank_nodes(cluster)[rank], model)
    tasks = Builder()
    last: tuple[int, ...] = ()
    for _ in range(step.micro_steps):
        for backwards in (False, True):
            order = range(model.layers)
            begun: list[tuple[int, ...]] = [last, last]
            for layer in reversed(order) if backwards else order:
                name, size = f"parameters {layer}", model.layer_bytes
                pulled = tasks.collective(Collective.BROADCAST, name, size, *begun[-2], stream="pull")
                what, seconds = ("backward", backward) if backwards else ("forward", forward)
                last = (tasks.compute(f"{what} {layer}", seconds, pulled, *last),)
                begun.append(last)
                if backwards:
                    tasks.collective(Collective.REDUCE, f"gradients {layer}", size, *last, stream="push")
    return Trace(rank, tuple(tasks))


def coarse(cluster: Cluster, step: Step, rank: int) -> Trace:
    """COARSE: the last layers' gradients go to parameter proxies during backward, the first layers' are all-reduced."""
    model, node = step.model, rank_nodes(cluster)[rank]
    _check_memory(cluster, model, 2 * HALF * model.parameters, "COARSE")
    plan = coarse_plan(cluster, step)
    forward, backward = _passes(rank_nodes(cluster)[rank], model)
    size = model.layer_bytes
    count = rank_count(cluster)
    tasks = Builder()
    last: tuple[int, ...] = ()
    for micro in range(step.micro_steps):
        for layer in range(model.layers):
            last = (tasks.compute(f"forward {layer}", forward, *last),)
        for layer in reversed(range(model.layers)):
            last = (tasks.compute(f"backward {layer}", backward, *last),)
            if micro == step.micro_steps - 1 and layer >= plan.first:
                pushed = tasks.transfer(f"push {layer}", size / node.proxy_link, size, *last, stream="push")
                ring = 2 * (count - 1) / count * size / node.proxy_ring
                summed = tasks.transfer(f"proxies {layer}", ring, size, pushed, stream="proxies")
                tasks.transfer(f"pull {layer}", size / node.proxy_link, size, summed, stream="pull")
    ends = [
        tasks.collective(Collective.ALL_REDUCE, f"gradients {layer}", size, *last)
        for layer in reversed(range(plan.first))
    ]
    if ends:
        tasks.compute("optimizer", STATES * plan.first * model.layer_parameters / _MEMORY_RATE, *ends)
    return Trace(rank, tuple(tasks))


def coarse_plan(cluster: Cluster, step: Step) -> DualPlan:
    """Which layers go to proxies, by the project's own plan for these links (docs/explanation/coarse.md).

    All ranks have one plan, that of the slowest GPU and links.

    Raises:
        PerformanceError: fewer than two ranks.
    """
    count, model = rank_count(cluster), step.model
    nodes = rank_nodes(cluster)
    node = min(nodes, key=lambda each: each.flops)
    if count < 2:
        raise PerformanceError("COARSE needs two ranks: there is nothing to synchronize")
    forward, backward = (seconds * model.layers for seconds in _passes(node, model))
    # Gradients leave in the last micro-step's backward pass: all passes before it hide nothing.
    before = step.micro_steps * forward + (step.micro_steps - 1) * backward
    workers = workers_of(cluster)
    among = node.scale_up if len(workers) == 1 else PICOS_PER_SECOND / cluster.host_byte(*workers)
    ring, link = (min(getattr(each, key) for each in nodes) for key in ("proxy_ring", "proxy_link"))
    costs = DualCosts(before, backward, count, among, ring, link)
    return dual_plan([model.layer_bytes] * model.layers, costs)


GENERATORS: dict[str, Callable[[Cluster, Step, int], Trace]] = {
    "ddp": ddp, "zero3": zero3, "mics": mics, "luwu": luwu, "coarse": coarse,
}  # fmt: skip
"""System -> what a rank does in a step."""
