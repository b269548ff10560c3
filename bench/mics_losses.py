"""The MiCS paper's Figure 16: losses of a sharded training beside those of whole models on every rank."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from itertools import chain

import torch
from torch import nn

from bench.report import Figure
from catchment.host.collectives import Fixed
from catchment.host.torch.partition import layers_of
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.links import Links
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel
from catchment.sim.lab.rank_lab import RankLab, together
from catchment.sim.training.data import Corpus, Shard, load_corpus
from catchment.sim.training.model import PRESETS, Decoder, initialise, next_byte_loss

WORLD, NODE, STEPS, BATCH = 8, 2, 12, 1
EXPONENT = 4
EVERYBODY = [tuple(range(WORLD))]
SHAPE = PRESETS["demo"]
_SEEDING = threading.Lock()


def whole_model() -> Decoder:
    """The demo's model, the same on every rank."""
    decoder = Decoder(SHAPE)
    with _SEEDING:  # torch has one generator for all threads
        initialise(decoder, 1)
    return decoder


def losses(
    corpus: Corpus, rank: int, model: nn.Module, parameters: list[nn.Parameter], step: Callable[[torch.Tensor], float]
) -> list[float]:
    """The loss of each step; `step` computes one, and leaves the mean gradients of all ranks in `parameters`."""
    optimizer = torch.optim.AdamW(parameters, lr=1.5e-3)
    text = Shard(corpus, worker=rank, workers=WORLD, sequence=SHAPE.sequence, seed=1)
    found = []
    for number in range(STEPS):
        found.append(step(text.batch(number, BATCH)))
        optimizer.step()
        optimizer.zero_grad()
    return found


def with_whole_models(lab: RankLab, corpus: Corpus, rank: int) -> list[float]:
    """What DistributedDataParallel does: a mean of each layer's gradients over all ranks, as integers of one E."""
    model = whole_model()
    layers = [layer.parameters for layer in layers_of(model)]
    communicator, _ = lab.opener(rank)("whole", EVERYBODY)
    with communicator:

        def step(tokens: torch.Tensor) -> float:
            loss = next_byte_loss(model(tokens), tokens)
            loss.backward()  # type: ignore[no-untyped-call]
            for parameters in layers:
                gradients = [value.grad for value in parameters if value.grad is not None]
                flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
                communicator.all_reduce(flat, op="mean", scaling=Fixed(EXPONENT)).wait()
                sizes = [gradient.numel() for gradient in gradients]
                for gradient, mean in zip(gradients, torch.split(flat, sizes), strict=True):
                    gradient.copy_(mean.view(gradient.shape))
            return float(loss.detach())

        return losses(corpus, rank, model, list(model.parameters()), step)


def with_shards(corpus: Corpus, links: Links) -> list[float]:
    """The same with a sharded model in integer mode."""
    with ShardedModel(whole_model(), MiCSOptions(accumulate="int", exponent=EXPONENT), links) as mics:

        def step(tokens: torch.Tensor) -> float:
            with mics.micro_step(0):
                loss = next_byte_loss(mics.model(tokens), tokens)
                loss.backward()  # type: ignore[no-untyped-call]
            return float(loss.detach())

        return losses(corpus, links.rank, mics.model, mics.parameters(), step)


def figure_16() -> list[Figure]:
    """Losses of all ranks and steps that have the bits of whole models'."""
    corpus, found = load_corpus(), []
    with RankLab(WORLD).running() as lab:
        lab.prepare("whole", EVERYBODY)
        wanted = together([partial(with_whole_models, lab, corpus, rank) for rank in range(WORLD)])
        lab.clear()
        assert wanted[0][-1] < wanted[0][0]
        for size in (2, 4, 8):
            with lab.linked(Groups.of(WORLD, size, NODE)) as links:
                curves = together([partial(with_shards, corpus, own) for own in links])
            pairs = zip(chain.from_iterable(curves), chain.from_iterable(wanted), strict=True)
            same = sum(own == right for own, right in pairs)
            found.append(
                Figure(f"figure 16, p = {size}: losses with DDP's bits", same, "", "losses", WORLD * STEPS, 1.0)
            )
    return found
