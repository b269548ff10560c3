"""Pushes of a layer's gradients, kept alive until the network has them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from catchment.host.layers import Completion, LayerSpec, Timeline, TransferPort


@dataclass(frozen=True, slots=True)
class _Pushed:
    layer: int
    started: float
    gradients: list[torch.Tensor]
    completions: list[Completion]

    @property
    def nbytes(self) -> int:
        return sum(gradient.numel() * gradient.element_size() for gradient in self.gradients)


class PushBehind:
    """Pushes one message per tensor; at most `limit` layers of gradients wait for the network at a time."""

    def __init__(
        self, port: TransferPort, limit: int, timeline: Timeline, numbers: Sequence[int] | None = None
    ) -> None:
        """Hold the port; nothing is sent before the first `push`. `numbers`: of the layers in the timeline."""
        self._port = port
        self._limit = limit
        self._timeline = timeline
        self._numbers = numbers
        self._waiting: deque[_Pushed] = deque()

    @property
    def held_bytes(self) -> int:
        """Bytes of gradients not yet acknowledged."""
        return sum(pushed.nbytes for pushed in self._waiting)

    def push(self, layer: LayerSpec, gradients: Sequence[torch.Tensor], exponents: Sequence[int]) -> None:
        """Push the layer's gradients (one fp32 tensor per tensor of the layer, in its order); frees what is done."""
        self._reap(self._limit - 1)
        kept = [gradient.detach().contiguous() for gradient in gradients]
        started = time.monotonic()
        completions = [
            self._port.push(gradient.view(-1), exponent=exponent)
            for gradient, exponent in zip(kept, exponents, strict=True)
        ]
        number = layer.index if self._numbers is None else self._numbers[layer.index]
        self._waiting.append(_Pushed(number, started, kept, completions))

    def wait(self) -> None:
        """Block until every gradient pushed so far is acknowledged; raises EndpointError."""
        self._reap(0)

    def _reap(self, keep: int) -> None:
        while self._waiting and (len(self._waiting) > keep or self._waiting[0].completions[-1].done()):
            pushed = self._waiting[0]
            for completion in pushed.completions:
                completion.wait()
            self._waiting.popleft()
            self._timeline.add("push", pushed.layer, pushed.started, pushed.started + pushed.completions[-1].latency)
