"""Eight ranks on links of a limited rate: the time of a micro-step of ours, by the formulas, and of FSDP2 on gloo.

Nodes have two ranks. Each rank has a link of its own to the other nodes, and memory (ours) or an interface without a
limit (gloo's) to the other rank of its node. Of ours, the links are ports of a switch; of gloo's, of a bridge.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
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
LANES, SLOTS = 256, 64
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
"""Groups inside a node send so little that processors, not links of the same rate, would bind: theirs are slower, and
slower again by the micro-steps of a step where they are summed once in it."""
NEAR = 1e-3
"""Losses of the same model in two runs differ by this share at most: their sums are rounded differently."""


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


def near_losses(answers: Sequence[dict[str, Any]], peers: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """How many losses of ours are within `NEAR` of the peers' of the same rank and micro-step, and of how many."""
    pairs = [
        pair
        for answer, peer in zip(answers, peers, strict=True)
        for pair in zip(answer["losses"], peer["losses"], strict=True)
    ]
    return sum(abs(own - other) <= NEAR * abs(other) for own, other in pairs), len(pairs)


def processor_time(words: str, answers: Sequence[dict[str, Any]], micro_step: float) -> Figure:
    """What the ranks compute in a micro-step, which the links wait for where the processors are few."""
    micro_steps = MICRO_STEPS * len(answers[0]["seconds"])
    used = sum(float(answer["processor"]) for answer in answers) / micro_steps
    return Figure(f"{words}: processor time of all ranks", used, "s", f"{os.cpu_count()} processors", micro_step)


def measured(name: str, rate: int, steps: int = STEPS) -> list[Figure]:
    """Figures of a model of `MODELS` in all `SETTINGS`, on links of `rate` bits per second.

    Groups inside a node get less: `SLOWER_BELOW`. `steps`: of the optimizer, of which the first is not timed.

    Raises:
        SystemExit: there is no such model, or a rank ended.
    """
    if name not in MODELS:
        raise SystemExit(f"there is no model {name}: give one of {', '.join(MODELS)}")
    found = []
    for own, settings in groupby(SETTINGS, partial(rate_of, rate)):
        found += _measured(name, own, list(settings), steps)
    return found


def rate_of(rate: int, setting: tuple[int, bool, bool]) -> int:
    """Bits per second of the links of a setting, where those of groups of several nodes have `rate`."""
    size, _, two_hop = setting
    if size > NODE:
        return rate
    return rate // SLOWER_BELOW // (MICRO_STEPS if two_hop else 1)


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
            said = answers_to(theirs, [order] * WORLD)
            peers = seconds_of(said)
            own, wanted = seconds_of(answers), volume(shape, order)
            formula = framed(wanted.total) * 8 / rate / MICRO_STEPS
            kind = f"{'two stages' if hierarchical else 'one stage'}, {1 + two_hop} hops"
            words = f"{name}, p = {size}, {kind}, {rate / 1e6:g} Mb/s"
            sent = max(answer["bytes"] for answer in answers) / steps
            found.append(Figure(f"{words}: sent to other nodes", sent, "B", "formula", framed(wanted.total), 1.0))
            found.append(Figure(f"{words}: a micro-step", own, "s", "formula", formula, WITHIN))
            found.append(Figure(f"{words}: a micro-step", own, "s", "FSDP2 on gloo", peers, 1.0))
            near, count = near_losses(answers, said)
            found.append(Figure(f"{words}: losses of FSDP2's", near, "", "losses", count, 1.0))
            found.append(processor_time(words, answers, own))
            for each in found[-5:]:  # a setting takes a minute
                beside = f"{each.reference_name} {each.reference:.4g}, {each.ratio:.2f}"
                print(f"{each.name}: {each.value:.4g} {each.unit}; {beside}", flush=True)
    return found
