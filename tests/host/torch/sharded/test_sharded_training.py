"""Training with a sharded model, beside the same training with a whole model on one rank."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from catchment.host.collectives import Fixed
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.links import Links
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel
from catchment.sim.lab.rank_lab import RankLab, together

SIZE, STEPS, ROWS = 4, 3, 2
EPS = 1e-4
"""Adam's eps; by a smaller one a gradient that is nothing but rounding moves its weight by a whole step."""
_SEEDING = threading.Lock()


class Blocks(nn.Module):
    """A few layers of unequal sizes, with a residual and one that is small."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        _SEEDING.acquire()  # torch has one generator for all threads
        torch.manual_seed(seed)
        self.first = nn.Linear(7, 12)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(12, 17), nn.Tanh(), nn.Linear(17, 12)) for _ in range(5))
        self.norm = nn.LayerNorm(12)
        self.last = nn.Linear(12, 3)
        _SEEDING.release()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        result: torch.Tensor = self.last(self.norm(x))
        return result


@pytest.fixture(scope="module")
def lab() -> Iterator[RankLab]:
    """A switch of four ranks."""
    with RankLab(SIZE).running() as running:
        yield running


def batches(seed: int, micro_steps: int) -> torch.Tensor:
    """(steps, micro-steps, ranks, rows, 7)."""
    made = torch.Generator().manual_seed(seed)
    return torch.randn(STEPS, micro_steps, SIZE, ROWS, 7, generator=made)


def loss_of(model: nn.Module, part: torch.Tensor) -> torch.Tensor:
    return (model(part) ** 2).mean()


def train(links: Links, options: MiCSOptions, seed: int, micro_steps: int) -> list[torch.Tensor]:
    """Losses, and the flat weights at the end."""
    data = batches(seed, micro_steps)
    with ShardedModel(Blocks(seed), options, links) as mics:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=0.02, eps=EPS)
        losses = []
        for step in range(STEPS):
            for number in range(micro_steps):
                with mics.micro_step(number):
                    loss = loss_of(mics.model, data[step, number, links.rank])
                    loss.backward()
                losses.append(loss.detach())
            optimizer.step()
            optimizer.zero_grad()
        return [torch.stack(losses), *(value.detach().clone() for value in mics.parameters())]


def whole(seed: int, micro_steps: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """What one rank with all data gets: losses (steps x micro-steps, ranks), and the weights of each layer."""
    data = batches(seed, micro_steps)
    model = Blocks(seed)
    layers = [model.first, *model.blocks, model.norm, model.last]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, eps=EPS)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        for number in range(micro_steps):
            each = [loss_of(model, data[step, number, rank]) for rank in range(SIZE)]
            losses.append(torch.stack(each).detach())
            (sum(each) / (SIZE * micro_steps)).backward()
        optimizer.step()
    flat = [torch.cat([p.detach().reshape(-1) for p in layer.parameters()]) for layer in layers]
    return torch.stack(losses), flat


def joined(results: list[list[torch.Tensor]], groups: Groups) -> list[torch.Tensor]:
    """Each layer's weights, from the chunks of the first partition group; the others have the same."""
    for rank, result in enumerate(results):
        for own, first in zip(result[1:], results[groups.number(rank)][1:], strict=True):
            assert torch.equal(own, first), f"rank {rank} holds other values than rank {groups.number(rank)}"
    return [
        torch.cat(chunks) for chunks in zip(*(result[1:] for result in results[: groups.partition_size]), strict=True)
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "grouping",
    [(4, 2, True), (4, 2, False), (2, 2, True), (4, 1, True), (2, 1, True), (1, 1, True)],
)
@pytest.mark.parametrize("two_hop", [True, False])
def test_same_training_as_one_rank(
    lab: RankLab, rng: random.Random, grouping: tuple[int, int, bool], two_hop: bool
) -> None:
    partition, node, hierarchical = grouping
    groups, seed, micro_steps = Groups.of(SIZE, partition, node), rng.randrange(1 << 31), rng.choice((1, 2))
    options = MiCSOptions(micro_steps=micro_steps, two_hop=two_hop, prefetch=rng.choice((0, 1, 2, 5)))
    with lab.linked(groups, hierarchical=hierarchical) as links:
        results = together([lambda own=own: train(own, options, seed, micro_steps) for own in links])
    losses, weights = whole(seed, micro_steps)
    torch.testing.assert_close(torch.stack([result[0] for result in results], dim=1), losses, rtol=1e-4, atol=1e-5)
    for chunks, right in zip(joined(results, groups), weights, strict=True):
        torch.testing.assert_close(chunks[: right.numel()], right, rtol=2e-3, atol=2e-4)


def test_integers_give_the_same_bits_for_every_grouping(lab: RankLab, rng: random.Random) -> None:
    seed, micro_steps = rng.randrange(1 << 31), rng.choice((2, 4))
    found: dict[Any, list[torch.Tensor]] = {}
    for partition, node, hierarchical, two_hop in [
        (4, 2, True, True),
        (4, 2, False, False),
        (2, 2, True, False),
        (2, 1, True, True),
        (1, 1, True, True),
    ]:
        groups = Groups.of(SIZE, partition, node)
        options = MiCSOptions(micro_steps=micro_steps, two_hop=two_hop, accumulate="int", exponent=3)
        with lab.linked(groups, hierarchical=hierarchical) as links:
            results = together([lambda own=own, o=options: train(own, o, seed, micro_steps) for own in links])
        numels = [weights.numel() for weights in whole(seed, 1)[1]]
        found[partition, node, hierarchical, two_hop] = [
            chunk[:numel] for chunk, numel in zip(joined(results, groups), numels, strict=True)
        ]
    first = next(iter(found.values()))
    for which, weights in found.items():
        for own, right in zip(weights, first, strict=True):
            assert torch.equal(own, right), which


@pytest.mark.parametrize("grouping", [(4, 2, True), (2, 2, True), (2, 1, True)])
def test_integers_give_the_bits_of_ddp(lab: RankLab, rng: random.Random, grouping: tuple[int, int, bool]) -> None:
    """The mean of one micro-step is that of an all_reduce with `Fixed` over all ranks."""
    partition, node, hierarchical = grouping
    groups, seed, exponent = Groups.of(SIZE, partition, node), rng.randrange(1 << 31), 2
    data = batches(seed, 1)
    everybody = [tuple(range(SIZE))]
    lab.prepare("ddp", everybody)

    def ddp(own: Links) -> list[torch.Tensor]:
        model = Blocks(seed)
        loss_of(model, data[0, 0, own.rank]).backward()
        communicator, _ = lab.opener(own.rank)("ddp", everybody)
        with communicator:
            found = []
            for layer in (model.first, *model.blocks, model.norm, model.last):
                flat = torch.cat([p.grad.reshape(-1) for p in layer.parameters() if p.grad is not None])
                communicator.all_reduce(flat, op="mean", scaling=Fixed(exponent)).wait()
                found.append(flat)
        return found

    def sharded(own: Links) -> list[torch.Tensor]:
        options = MiCSOptions(accumulate="int", exponent=exponent)
        with ShardedModel(Blocks(seed), options, own) as mics:
            with mics.micro_step(0):
                loss_of(mics.model, data[0, 0, own.rank]).backward()
            return [torch.empty(0), *(value.grad.clone() for value in mics.parameters() if value.grad is not None)]

    with lab.linked(groups, hierarchical=hierarchical) as links:
        right = together([partial(ddp, own) for own in links])[0]
        found = joined(together([partial(sharded, own) for own in links]), groups)
    for own, wanted in zip(found, right, strict=True):
        assert torch.equal(own[: wanted.numel()], wanted)
