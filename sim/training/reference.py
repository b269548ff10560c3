"""The same training in one process with plain PyTorch: same text, same rounding of parameters, no network.

It sums the workers' fp32 gradients as floats and uses torch.optim.Adam: what one would write by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from catchment.sim.lab import events
from catchment.sim.training.data import Corpus, Shard, load_corpus
from catchment.sim.training.model import Decoder, initialise, next_byte_loss
from catchment.sim.training.options import TrainingOptions

Tell = Callable[..., None]


class Reference:
    """fp32 master weights, and a model that computes on them as rounded for the wire."""

    def __init__(self, options: TrainingOptions, corpus: Corpus) -> None:
        """Same seed, same text as the in-network run."""
        self._options = options
        self.model = Decoder(options.shape)
        initialise(self.model, options.seed)
        self.parameters = list(self.model.parameters())
        self.master = [parameter.detach().clone().requires_grad_() for parameter in self.parameters]
        self._adam = torch.optim.Adam(
            self.master,
            lr=options.rate,
            betas=(options.adam.beta1, options.adam.beta2),
            eps=options.adam.eps,
            foreach=False,
        )
        self._shards = [
            Shard(corpus, worker=w, workers=options.workers, sequence=options.shape.sequence, seed=options.seed)
            for w in range(options.workers)
        ]

    def round_parameters(self) -> None:
        """Give the model the master weights as they would arrive over the wire."""
        with torch.no_grad():
            for parameter, master in zip(self.parameters, self.master, strict=True):
                parameter.copy_(master.to(self._options.wire_type.torch_dtype))

    def gradients(self, worker: int, step: int) -> tuple[float, list[torch.Tensor]]:
        """One worker's loss and gradients at the present parameters."""
        tokens = self._shards[worker].batch(step, self._options.batch)
        loss = next_byte_loss(self.model(tokens), tokens)
        return loss.item(), list(torch.autograd.grad(loss, self.parameters))

    def validate(self, worker: int) -> float:
        """One worker's validation loss."""
        tokens = self._shards[worker].validation(self._options.validation_batch)
        with torch.no_grad():
            return next_byte_loss(self.model(tokens), tokens).item()

    def update(self, mean: Sequence[torch.Tensor | None], step: int) -> None:
        """One step of Adam with the workers' mean gradients; a tensor with None is left alone."""
        for group in self._adam.param_groups:
            group["lr"] = self._options.rate * self._options.warmed(step)
        for master, gradient in zip(self.master, mean, strict=True):
            master.grad = gradient
        self._adam.step()


def train(options: TrainingOptions, tell: Tell, corpus: Corpus | None = None) -> Reference:
    """Run the schedule of a training; tells one event per pass with the loss of every worker."""
    reference = Reference(options, load_corpus() if corpus is None else corpus)
    step = 0
    for number, training in enumerate(options.passes):
        started = time.monotonic()
        reference.round_parameters()
        if training:
            results = [reference.gradients(worker, step) for worker in range(options.workers)]
            losses = [loss for loss, _ in results]
            mean = [
                torch.stack(parts).sum(0) / options.workers
                for parts in zip(*(gradients for _, gradients in results), strict=True)
            ]
            reference.update(mean, step)
            step += 1
        else:
            losses = [reference.validate(worker) for worker in range(options.workers)]
        ended = time.monotonic()
        tell(events.PASS, index=number, train=training, losses=losses, seconds=ended - started, at=ended)
    return reference
