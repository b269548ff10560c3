"""The one call that puts a model into the network."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from catchment.host.layers import Homes, Timeline, TrainingError, TransferPort, WireType
from catchment.host.torch.hooks import InNetwork
from catchment.host.torch.partition import layers_of, table_of


def attach(
    model: nn.Module,
    endpoint: TransferPort | Sequence[TransferPort],
    layers: Sequence[str] | None = None,
    *,
    kept: Sequence[str] = (),
    homes: Homes | None = None,
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
        model: any module; `layers_of` says how it falls into layers.
        endpoint: to the optimizer node; several, in the order of their numbers, where several share the model.
        layers: names of the modules that are layers, in the order forward runs them (default: see `layers_of`).
        kept: layers whose parameters forward also uses outside of them; they keep their memory for the whole step, as
            tied weights do.
        homes: which optimizer node holds what, as all of them were told (default: `Homes.spread` over the endpoints).
        prefetch: pulls in flight, in layers. pushes: layers whose gradients may await the network.
        timeline: collects spans forward, backward, wait, pull, push.

    Raises:
        TrainingError: parameters in no layer, parameters that are not fp32, names that the model does not have, homes
            of another model or of more or fewer optimizer nodes than endpoints.
    """
    found = layers_of(model, layers, kept)
    table = table_of(found)
    ports = tuple(endpoint) if isinstance(endpoint, Sequence) else (endpoint,)
    if homes is None:
        homes = Homes.spread(table, len(ports))
    if homes.table != table:
        raise TrainingError("homes= are of another model: make them from table_of(layers_of(model)) of this one")
    if homes.roots != len(ports):
        raise TrainingError(f"{len(ports)} endpoints for {homes.roots} optimizer nodes: give one for each, in order")
    return InNetwork(
        model,
        found,
        ports,
        homes,
        wire=wire,
        prefetch=prefetch,
        pushes=pushes,
        timeline=Timeline() if timeline is None else timeline,
    )
