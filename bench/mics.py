"""`make bench-mics`: what a sharded model moves between nodes, beside the formulas; its bits beside DDP's; its times.

`python -m bench.mics --links demo=20 --links 8M=60` is for other models or rates (Mb/s) of the timed part, which needs
root and iproute2 for FSDP2's links; `--no-timed` leaves it out. `--quick --links demo=20` times one step of every
setting of the demo's model, and nothing else: some ten minutes on two processors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import torch
import typer
from torch import nn

from bench.mics_links import QUICK_STEPS, measured
from bench.mics_links import STEPS as TIMED_STEPS
from bench.mics_losses import figure_16
from bench.mics_rings import counted
from bench.report import Figure, publish
from catchment.host.torch.sharded.gather import Gatherer
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.links import Line, Links
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel
from catchment.program import run_program
from catchment.sim.lab.rank_lab import RankLab, together
from catchment.sim.performance.figures.mics import hierarchical_cut
from catchment.sim.performance.partition_gather import sent_between_nodes

NODE, GATHERED = 8, 1 << 18
LINKS = ["demo=20", "8M=60"]
MICRO_STEPS, STEPS = 4, 2
WIDTH, LAYERS = 128, 4
WITHIN = 0.99
"""What two stages spare is within 1 % of the formula."""


def sent_on_lines(links: Sequence[Links], lines: Callable[[Links], Sequence[Line]]) -> int:
    """Bytes that the ranks of the first node have sent on lines that cross nodes, frames' headers included."""
    size = links[0].groups.node_size
    total = 0
    for own in links[:size]:
        for line in lines(own):
            if line.communicator is not None and len({rank // size for rank in line.ranks}) > 1:
                total += line.communicator.stats()["bytes_sent"]
    return total


def counted_gather(lab: RankLab, groups: Groups, *, hierarchical: bool) -> int:
    """Bytes that a node sends through the switch to gather `GATHERED` floats."""

    def body(own: Links) -> None:
        layout = ShardLayout(GATHERED, own.nodes, own.lanes)
        number = groups.number(own.rank)
        chunk = torch.arange(layout.chunk, dtype=torch.float32) + number * layout.chunk
        out = torch.zeros(layout.padded)
        gatherer = Gatherer(own)
        gatherer.start(chunk, out, layout, tag=1, doing="a gather").wait()
        gatherer.close()
        assert torch.equal(out, torch.arange(layout.padded, dtype=torch.float32))

    with lab.linked(groups, hierarchical=hierarchical) as links:
        together([partial(body, own) for own in links])
        return sent_on_lines(links, lambda own: (own.gather.between, own.gather.inside))


def model() -> nn.Module:
    """The same on every rank."""
    made = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))
    with torch.no_grad():
        for number, value in enumerate(made.parameters()):
            value.copy_(torch.sin(torch.arange(value.numel()) + number).view(value.shape) / 16)
    return made


def counted_training(lab: RankLab, groups: Groups, options: MiCSOptions) -> tuple[int, torch.Tensor]:
    """Bytes that a node sends to others for gradients, and the trained weights of the first layer's first chunk."""
    weights: dict[int, torch.Tensor] = {}

    def body(own: Links) -> None:
        made = torch.Generator().manual_seed(own.rank)
        mics = ShardedModel(model(), options, own)
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.01)
        for _ in range(STEPS):
            for number in range(options.micro_steps):
                with mics.micro_step(number):
                    mics.model(torch.randn(4, WIDTH, generator=made)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if own.rank == 0:
            weights[0] = mics.parameters()[0].detach().clone()

    with lab.linked(groups, hierarchical=options.hierarchical) as links:
        together([partial(body, own) for own in links])
        sent = sent_on_lines(links, lambda own: (own.scatter.between, own.scatter.inside, own.replicas))
    return sent, weights[0]


def volumes() -> list[Figure]:
    """What two stages spare between nodes: of rings, simulated, and through the switch, counted."""
    found = []
    for size in (16, 32, 64):
        flat, staged = (sent_between_nodes(size, NODE, staged=both) for both in (False, True))
        wanted = 100 * hierarchical_cut(size, NODE)
        name = f"simulated ring gather, p = {size}: two stages less"
        found += [
            Figure(name, 100 * (1 - staged.data / flat.data), "%", "formula", wanted, WITHIN),
            Figure(f"{name}, acknowledgements too", 100 * (1 - staged.everything / flat.everything), "%", "formula",
                   wanted),
        ]  # fmt: skip
    with RankLab(16).running() as lab:
        groups = Groups.of(16, 16, NODE)
        counts = [counted_gather(lab, groups, hierarchical=staged) for staged in (True, False)]
    found.append(Figure("switch gather, p = 16: bytes of a node", counts[0], "B", "one stage", counts[1], 1 / NODE))
    return found


def hops() -> list[Figure]:
    """What a node sends for gradients with one hop and with two, and with integers of every grouping."""
    found = []
    options = MiCSOptions(micro_steps=MICRO_STEPS)
    with RankLab(8).running() as lab:
        groups = Groups.of(8, 2, 2)
        one, two = (
            counted_training(lab, groups, MiCSOptions(micro_steps=MICRO_STEPS, two_hop=both))[0]
            for both in (False, True)
        )
        found.append(
            Figure(
                f"gradients between nodes, one hop, s = {MICRO_STEPS}", one, "B", "two hops", two, float(MICRO_STEPS)
            )
        )
        bits = []
        for size in (1, 2, 4, 8):
            exact = MiCSOptions(micro_steps=options.micro_steps, accumulate="int")
            bits.append(counted_training(lab, Groups.of(8, size, 2), exact)[1])
    numel = min(value.numel() for value in bits)
    same = sum(torch.equal(value[:numel], bits[0][:numel]) for value in bits)
    found.append(Figure("partition sizes with the bits of DDP", same, "", "sizes", len(bits), 1.0))
    n, p = 128, 8
    two_hop = MICRO_STEPS * (p - 1) / p + 2 * (n - p) / (n * p) * p
    bound = 2 * MICRO_STEPS / (MICRO_STEPS + 2)
    exact_ratio = 2 * MICRO_STEPS * (n - 1) / n / two_hop
    found.append(
        Figure(f"2-hop against an all-reduce each micro-step, n = {n}, p = k = {p}", exact_ratio, "", "2s/(s+2)", bound)
    )
    return found


def main(
    *,
    timed: Annotated[bool, typer.Option(help="Measure on links between namespaces, too.")] = True,
    links: Annotated[
        list[str], typer.Option(help="MODEL=RATE: the model, demo or 8M, and the Mb/s of each rank's link.")
    ] = LINKS,
    quick: Annotated[
        bool, typer.Option(help="Time one step of every setting, and leave out what is not timed.")
    ] = False,
) -> None:
    """Run it."""
    figures = [] if quick else [*volumes(), *hops(), *figure_16()]
    if timed and not quick:
        figures.append(counted())
    for each in links if timed else ():
        name, _, rate = each.partition("=")
        figures += measured(name, int(float(rate) * 1e6), QUICK_STEPS if quick else TIMED_STEPS)
    publish(
        "mics", figures, ["simulated: frames with data on the link of a node, in the simulator; all else is counted"]
    )


if __name__ == "__main__":
    run_program(main)
