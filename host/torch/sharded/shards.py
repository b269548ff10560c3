"""The part of every layer that this rank holds, fp32, and its gradient."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import final

import torch
from torch import nn

from catchment.host.collectives import CollectiveError
from catchment.host.torch.partition import ModelLayer
from catchment.host.torch.sharded.arenas import Arena
from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.links import Line, Links


@final
class Shards:
    """A flat fp32 parameter for each layer, of which rank number i of the partition group has chunk i.

    Attributes:
        layouts: of the layers.
        parameters: this rank's chunks.
        dtype: that layers are gathered in.

    Raises:
        ShardingError: the ranks' weights differ, parameters have no memory, or several types.
    """

    def __init__(
        self,
        layers: Sequence[ModelLayer],
        parameters: Sequence[Sequence[nn.Parameter]],
        links: Links,
        dtype: torch.dtype | None,
    ) -> None:
        types = {parameter.dtype for each in parameters for parameter in each}
        if len(types) != 1 or any(parameter.is_meta for each in parameters for parameter in each):
            raise ShardingError(
                f"parameters have types {sorted(map(str, types))}: give one type, not on the meta device"
            )
        self.dtype = dtype or types.pop()
        self.layouts = [ShardLayout(layer.spec.numel, links.nodes, links.lanes) for layer in layers]
        chunks = [layout.chunk for layout in self.layouts]
        self._values, self._gradients = Arena(chunks, torch.float32), Arena(chunks, torch.float32)
        self._sent = self._values if self.dtype == torch.float32 else Arena(chunks, self.dtype)
        number = links.groups.number(links.rank)
        sum_of_all = 0
        for index, (layer, layout) in enumerate(zip(layers, self.layouts, strict=True)):
            whole = torch.zeros(layout.padded)
            whole[: layer.spec.numel] = layer.weights()
            sum_of_all = zlib.crc32(whole[: layer.spec.numel].numpy().tobytes(), sum_of_all)
            self._values[index].copy_(whole[layout.part(number)])
        _compare(sum_of_all, (links.gather.inside, links.gather.between, links.replicas))
        self.parameters = [nn.Parameter(self._values[index]) for index in range(len(layers))]

    @property
    def nbytes(self) -> int:
        """Bytes of parameters, gradients, and what is sent of them."""
        return (
            self._values.nbytes + self._gradients.nbytes + (self._sent.nbytes if self._sent is not self._values else 0)
        )

    def refresh(self) -> None:
        """The parameters have changed."""
        if self._sent is not self._values:
            for index, parameter in enumerate(self.parameters):
                self._sent[index].copy_(parameter.detach())

    def sent(self, layer: int) -> torch.Tensor:
        """What this rank gives to a gather."""
        return self._sent[layer]

    def gradient(self, layer: int) -> torch.Tensor:
        """Memory of a chunk's gradient."""
        return self._gradients[layer]


def _compare(own: int, lines: Sequence[Line]) -> None:
    """Refuse weights that differ, on all ranks: what a line has found out goes along the next one."""
    bounds = torch.tensor([own, own, own])  # this rank's, and the least and the largest known
    strange = ""
    for line in lines:
        if line.communicator is None:
            continue
        said = torch.zeros(line.communicator.size, 3, dtype=torch.int64)
        try:
            line.communicator.all_gather(bounds, said).wait()
        except CollectiveError as error:
            raise line.explained(error, "the comparison of the ranks' weights") from error
        others = [str(rank) for rank, theirs in zip(line.ranks, said[:, 0], strict=True) if theirs != said[0, 0]]
        if others and not strange:
            strange = f"the weights of rank {', '.join(others)} are not those of rank {line.ranks[0]}"
        bounds = torch.stack([bounds[0], said[:, 1].min(), said[:, 2].max()])
    if bounds[1] != bounds[2]:
        raise ShardingError(
            f"{strange or 'the ranks have different weights'}: make the model with the same seed on all of them, or "
            "load the same state"
        )
