"""A worker of a training: pulls layers, computes on its own text, pushes gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from catchment.host.layers import Timeline, TransferPort
from catchment.host.torch import InNetwork, attach
from catchment.sim.lab import events
from catchment.sim.training.data import Shard, load_corpus
from catchment.sim.training.model import Decoder, next_byte_loss
from catchment.sim.training.options import TrainingOptions

Tell = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a worker sets up before the run: the model, without memory for its parameters, and its own text."""

    model: Decoder
    shard: Shard


def prepare(options: TrainingOptions, wid: int) -> Prepared:
    """Set up worker `wid`; its parameters will come from the network, layer by layer."""
    with torch.device("meta"):
        model = Decoder(options.shape)
    corpus = load_corpus()
    shard = Shard(corpus, worker=wid, workers=options.workers, sequence=options.shape.sequence, seed=options.seed)
    return Prepared(model, shard)


def train(options: TrainingOptions, prepared: Prepared, ports: Sequence[TransferPort], tell: Tell) -> dict[str, Any]:
    """Run all passes of the schedule; tells one event per pass and returns the facts for the last one.

    `ports`: one to each optimizer node.
    """
    model, shard = prepared.model, prepared.shard
    timeline = Timeline(enabled=True)
    network = attach(model, ports, wire=options.wire_type, timeline=timeline)
    try:
        return _passes(options, shard, model, network, tell, timeline)
    finally:
        network.detach()


def _passes(  # noqa: PLR0917
    options: TrainingOptions, shard: Shard, model: Decoder, network: InNetwork, tell: Tell, timeline: Timeline
) -> dict[str, Any]:
    options = replace(options, trained=network.trained())  # the optimizer nodes may have gone back
    step = options.trained
    traced = (0.0, 0.0)
    for number, training in enumerate(options.passes[options.first_pass :], options.first_pass):
        started = time.monotonic()
        if training:
            tokens = shard.batch(step, options.batch)
            loss = next_byte_loss(model(tokens), tokens)
            loss.backward()  # type: ignore[no-untyped-call]
            step += 1
        else:
            tokens = shard.validation(options.validation_batch)
            with torch.no_grad():
                loss = next_byte_loss(model(tokens), tokens)
        ended = time.monotonic()
        if training and step == options.traced_step:
            traced = (started, ended)
        tell(events.PASS, index=number, train=training, loss=loss.item(), seconds=ended - started, at=ended)
    network.wait()
    spans = [asdict(span) for span in timeline.during(*traced)]
    return {"memory": asdict(network.memory), "timeline": spans, "trained": options.trained}
