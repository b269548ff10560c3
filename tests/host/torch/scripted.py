"""A port whose optimizer node is a script: it serves given weights in the right order and keeps what is pushed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from catchment.host.layers import LayerTable, ParamHeader, Pass, Phase, WireType, pack_message
from catchment.host.torch import layers_of, table_of


class Finished:
    """A transfer that is done at once."""

    flags = 0
    max_abs = 0.0
    latency = 0.0

    def wait(self, timeout: float | None = None) -> None:
        """Never blocks."""

    def done(self) -> bool:
        return True


class ScriptedPort:
    """Serves `passes` (True: training) of `weights`; `spoil` may change each message before it is delivered.

    log: "pull L" and "push L.T" in the order of the calls. pushed: the gradients, as copies, in that order.
    """

    def __init__(
        self,
        table: LayerTable,
        weights: Sequence[torch.Tensor],
        passes: Sequence[bool | Pass],
        wire: WireType = WireType.BF16,
        spoil: Callable[[int, np.ndarray[Any, Any]], np.ndarray[Any, Any]] = lambda _number, message: message,
        *,
        loss_scale: float = 1.0,
        trained: int = 0,
    ) -> None:
        self.log: list[str] = []
        self.pushed: list[tuple[int, np.ndarray[Any, Any]]] = []
        self._spoil = spoil
        self._messages = []
        for number, kind in enumerate(map(Pass, passes)):
            order = [(layer, Phase.FORWARD) for layer in range(len(table))]
            if kind is not Pass.FORWARD:
                order += [(layer, Phase.BACKWARD) for layer in reversed(range(len(table)))]
            for layer, phase in order:
                exponents = tuple(range(layer, layer + len(table[layer].tensors)))
                last, accumulate = number == len(passes) - 1, kind is Pass.ACCUMULATE
                header = ParamHeader(layer, number, phase, exponents, last, loss_scale, accumulate, trained)
                self._messages.append(pack_message(header, table, wire, weights[layer]))
            trained += kind is Pass.TRAIN
        self._served = 0

    def pull(self, array: Any) -> Finished:
        message = self._spoil(self._served, self._messages[self._served].copy())
        array[:] = message
        self.log.append(f"pull {message[9]}")
        self._served += 1
        return Finished()

    def push(self, array: Any, exponent: int | None = None) -> Finished:
        assert exponent is not None
        self.pushed.append((exponent, array.clone().numpy()))
        self.log.append(f"push E={exponent}")
        return Finished()

    @property
    def everything_served(self) -> bool:
        """True when the schedule was pulled to its end."""
        return self._served == len(self._messages)


def flat_weights(model: nn.Module, layers: Sequence[str] | None = None) -> tuple[LayerTable, list[torch.Tensor]]:
    """The table of a model and a copy of its weights, layer by layer."""
    found = layers_of(model, layers)
    return table_of(found), [layer.weights() for layer in found]
