"""The one call that puts a model into the network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from catchment.host.layers import Timeline, TransferPort, WireType
from catchment.host.torch.hooks import InNetwork
from catchment.host.torch.partition import layers_of


def attach(
    model: nn.Module,
    endpoint: TransferPort,
    layers: Sequence[str] | None = None,
    *,
    kept: Sequence[str] = (),
    wire: WireType = WireType.BF16,
    prefetch: int = 3,
    pushes: int = 4,
    timeline: Timeline | None = None,
) -> InNetwork:
    """Train `model` with its parameters at the optimizer node; its own code stays unchanged.

    The parameters lose their memory here (a model built on the meta device never had any) and have it only while
    their layer computes. Each step is one forward and one backward; a forward under `torch.no_grad()` is a pass
    without gradients. Workers compute in fp32, on parameters rounded to `wire` (bf16 halves the traffic). Gradients
    are of the worker's own loss; the optimizer node divides their sum by the number of workers. A parameter that
    got no gradient (frozen or unused) counts as zero. A weight that two layers share is pulled with the first and keeps
    its memory until its gradient is complete. Buffers that are not parameters stay local to the worker.

    Args:
        layers: names of the modules that are layers, in the order forward runs them (default: see `layers_of`).
        kept: layers whose parameters forward also uses outside of them; they keep their memory for the whole step, as
            tied weights do.
        prefetch: pulls in flight, in layers. pushes: layers whose gradients may await the network.
        timeline: collects spans forward, backward, wait, pull, push.

    Raises:
        TrainingError: parameters in no layer, parameters that are not fp32, names that the model does not have.
    """
    found = layers_of(model, layers, kept)
    return InNetwork(
        model,
        found,
        endpoint,
        wire=wire,
        prefetch=prefetch,
        pushes=pushes,
        timeline=Timeline() if timeline is None else timeline,
    )
