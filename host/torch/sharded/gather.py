"""All-gathers of a layer in the partition group, in place and, across nodes, in two stages."""

from __future__ import annotations

from typing import final

import torch

from catchment.host.collectives import CollectiveError
from catchment.host.torch.sharded.chain import Chain, Flight
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.links import Links


@final
class Gatherer:
    """Gathers layers over the links of a rank."""

    def __init__(self, links: Links) -> None:
        self._path = links.gather
        self._lane = links.rank % links.lanes
        self._chain = Chain("catchment-gather")

    def start(self, own: torch.Tensor, out: torch.Tensor, layout: ShardLayout, *, tag: int, doing: str) -> Flight:
        """Gather a layer.

        Args:
            own: this rank's chunk.
            out: (layout.padded,) elements of the same type.
            tag: the same on all ranks.
            doing: what it is, for messages.
        """
        flight = Flight(doing)
        between, inside = self._path.between.communicator, self._path.inside.communicator
        try:
            if between is None and inside is None:
                out.copy_(own)
                flight.end(None, self._path.inside)
            elif between is None:
                assert inside is not None
                flight.end(inside.all_gather(own, out, tag=tag), self._path.inside)
            else:
                lane = out[self._lane * layout.chunk :]
                first = between.all_gather(own, lane, places=layout.between_nodes, tag=tag)
                self._chain.follow(first, self._path.between, flight, lambda: self._inside(out, layout, tag, flight))
        except CollectiveError as error:
            line = self._path.inside if between is None else self._path.between
            flight.fail(line.explained(error, doing))
        return flight

    def _inside(self, out: torch.Tensor, layout: ShardLayout, tag: int, flight: Flight) -> None:
        communicator = self._path.inside.communicator
        work = None if communicator is None else communicator.all_gather(out, out, places=layout.in_node, tag=tag)
        flight.end(work, self._path.inside)

    def close(self) -> None:
        """End its thread."""
        self._chain.close()
