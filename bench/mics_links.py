"""Eight ranks on links of a limited rate: the time of a micro-step of ours, by the formulas, and of FSDP2 on gloo.

Nodes have two ranks. Each rank has a link of its own to the other nodes, and memory (ours) or an interface without a
limit (gloo's) to the other rank of its node. Of ours, the links are ports of a switch; of gloo's, of a bridge.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.limited_hosts import limited_hosts
from bench.mics_member import BELOW_UDP, Order, crosses_nodes
from bench.rank_processes import RankProcesses
from bench.report import Figure
from catchment.host.torch.partition import layers_of
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.sim.lab.shm_lab import ShmLab
from catchment.sim.training.model import PRESETS, Decoder, ModelShape
from catchment.wire.generated.constants import HEADER_BYTES, LANE_BYTES

WORLD, NODE, MICRO_STEPS, STEPS = 8, 2, 4, 3
LANES, SLOTS = 256, 32
WITHIN = 1.1
"""A micro-step takes at most so many times what the links need, where they bind."""
MODELS = {"demo": PRESETS["demo"], "8M": ModelShape(layers=10, heads=8, hidden=256, sequence=128)}
SETTINGS = [
    (8, True, True), (8, False, True),
    (4, True, True), (4, True, False), (4, False, True), (4, False, False),
    (2, True, True), (2, True, False),
]  # fmt: skip
"""Ranks of a partition group, hierarchical, two hops; one group of all has no second hop."""
QUICK_STEPS = 2
SLOWER_BELOW = 4
"""Groups inside a node send so little that processors, not links of the same rate, would bind: theirs are slower."""


@dataclass(frozen=True, slots=True)
class Volume:
    """Bytes of arrays that a rank sends to other nodes, and receives from them, in a step."""

    gathers: int
    gradients: int
    replicas: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.gathers + self.gradients + self.replicas


def volume(shape: ModelShape, order: Order) -> Volume:
    """What the formulas say: through a switch, every rank of a group sends and receives as much as its result has.

    Of a gather and of the sums in two stages, between nodes go 1/lanes of the layer.
    """
    groups = Groups.of(*order.groups)
    staged = order.hierarchical and groups.nodes > 1
    nodes = groups.nodes if staged else 1
    layouts = [
        ShardLayout(layer.spec.numel, nodes, groups.partition_size // nodes) for layer in layers_of(Decoder(shape))
    ]
    sizes = [4 * layout.padded for layout in layouts]
    leaves = 0.0 if groups.nodes == 1 else 1 / groups.lanes if staged else 1.0
    kept = MiCSOptions().prefetch + 2  # layers whose memory has not been taken by others when a pass turns round
    forward = sum(sizes[kept:]) * (order.micro_steps - 1) + sum(sizes)
    backward = sum(sizes[:-kept]) * order.micro_steps
    hops = 1 if order.two_hop else order.micro_steps
    chunks = sum(4 * layout.chunk for layout in layouts) if groups.partition_size < groups.world else 0
    return Volume(
        gathers=round(leaves * (forward + backward)),
        gradients=round(leaves * sum(sizes) * order.micro_steps),
        replicas=chunks * hops,
    )


def framed(payload: float) -> float:
    """Bytes of frames that carry so many bytes of arrays."""
    vector = LANES * LANE_BYTES
    return payload * (vector + BELOW_UDP + HEADER_BYTES) / vector


def members(backend: str, folder: Path, places: Sequence[Sequence[str]]) -> RankProcesses:
    """Start the ranks of one backend, which take orders; `places`: what runs a command at the place of each rank."""
    rendezvous = str(folder / "rendezvous")
    tasks = [{"backend": backend, "rank": rank, "ranks": WORLD, "rendezvous": rendezvous} for rank in range(WORLD)]
    return RankProcesses("bench.mics_member", [[json.dumps(task)] for task in tasks], places)


def answers_to(ranks: RankProcesses, orders: Sequence[Order]) -> list[dict[str, Any]]:
    """Give each rank its order; return what they answer."""
    return [json.loads(line) for line in ranks.run([asdict(order) for order in orders])]


@contextmanager
def jobs(order: Order, rate: int) -> Iterator[list[Order]]:
    """The order of each rank, with the jobs of its groups: on the limited switch those between nodes."""
    groups = Groups.of(*order.groups)
    hosts = [f"w{rank}" for rank in range(WORLD)]
    limits = [f"{port}:rate={rate // 1000}kbit,queue=2m,seed={port}" for port in range(1, WORLD + 1)]
    limited = tuple(part for limit in limits for part in ("--fault", limit))
    slots = 8 * WORLD * SLOTS
    own: list[dict[str, dict[str, Any]]] = [{} for _ in hosts]
    with (
        ShmLab(hosts, lanes=LANES, slots=slots, extra=limited) as between,
        ShmLab(hosts, lanes=LANES, slots=slots) as inside,
    ):
        for kind, found in groups.all().items():
            for purpose in ("sum",) if kind == "replication" else ("gather", "scatter"):
                for ranks in found:
                    if len(ranks) == 1:
                        continue
                    lab = between if crosses_nodes(ranks, groups) else inside
                    name = f"{kind}-{purpose}-{ranks[0]}"
                    job = lab.allreduce([hosts[rank] for rank in ranks], slots=SLOTS, name=name)
                    for rank in ranks:
                        description = job.describe(hosts[rank])
                        port = f"shm:{lab.path(hosts[rank])}"
                        own[rank][f"{kind}-{purpose}"] = {"description": description, "port": port}
        yield [Order(**{**asdict(order), "jobs": found}) for found in own]


def seconds_of(answers: Sequence[dict[str, Any]]) -> float:
    """Seconds of a micro-step: the median step, the first left out, of the slowest rank."""
    slowest = max(float(median(answer["seconds"][1:])) for answer in answers)
    return slowest / MICRO_STEPS


def measured(name: str, rate: int, steps: int = STEPS) -> list[Figure]:
    """Figures of a model of `MODELS` in all `SETTINGS`, on links of `rate` bits per second.

    Groups inside a node get `rate` / `SLOWER_BELOW`. `steps`: of the optimizer, of which the first is not timed.

    Raises:
        SystemExit: there is no such model, or a rank ended.
    """
    if name not in MODELS:
        raise SystemExit(f"there is no model {name}: give one of {', '.join(MODELS)}")
    wide = [setting for setting in SETTINGS if setting[0] > NODE]
    inside = [setting for setting in SETTINGS if setting[0] <= NODE]
    return [
        *_measured(name, rate, wide, steps),
        *_measured(name, rate // SLOWER_BELOW, inside, steps),
    ]


def _measured(name: str, rate: int, settings: Sequence[tuple[int, bool, bool]], steps: int) -> list[Figure]:
    shape = MODELS[name]
    found = []
    with ExitStack() as exits:
        folder = Path(exits.enter_context(tempfile.TemporaryDirectory()))
        ours = members("catchment", folder, [[]] * WORLD)
        exits.callback(ours.close)
        theirs = members("gloo", folder, exits.enter_context(limited_hosts(WORLD, NODE, rate)))
        exits.callback(theirs.close)
        for size, hierarchical, two_hop in settings:
            order = Order(asdict(shape), (WORLD, size, NODE), hierarchical, two_hop, MICRO_STEPS, steps, {})
            with jobs(order, rate) as orders:
                answers = answers_to(ours, orders)
            peers = seconds_of(answers_to(theirs, [order] * WORLD))
            own, wanted = seconds_of(answers), volume(shape, order)
            formula = framed(wanted.total) * 8 / rate / MICRO_STEPS
            kind = f"{'two stages' if hierarchical else 'one stage'}, {1 + two_hop} hops"
            words = f"{name}, p = {size}, {kind}, {rate / 1e6:g} Mb/s"
            sent = max(answer["bytes"] for answer in answers) / steps
            found.append(Figure(f"{words}: sent to other nodes", sent, "B", "formula", framed(wanted.total), 1.0))
            found.append(Figure(f"{words}: a micro-step", own, "s", "formula", formula, WITHIN))
            found.append(Figure(f"{words}: a micro-step", own, "s", "FSDP2 on gloo", peers, 1.0))
            for each in found[-3:]:  # a setting takes a minute
                beside = f"{each.reference_name} {each.reference:.4g}, {each.ratio:.2f}"
                print(f"{each.name}: {each.value:.4g} {each.unit}; {beside}", flush=True)
    return found
