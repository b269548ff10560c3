"""Reduce-scatters of gradients: inside the node first, so that only one lane's part leaves it, then between nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import torch

from catchment.host.collectives import CollectiveError, Scaling, Work
from catchment.host.torch.sharded.chain import Chain, Flight
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.links import Line, Links

Then = Callable[[torch.Tensor], tuple[Work | None, Line, Callable[[], None] | None]]
"""Takes the sum of this rank's chunk; gives what is still under way, over which line, and what follows it."""


@final
class Scatterer:
    """Reduces gradients over the links of a rank."""

    def __init__(self, links: Links, scaling: Scaling) -> None:
        self._path = links.scatter
        self._lane = links.rank % links.lanes
        self._scaling = scaling
        self._first, self._second = Chain("catchment-scatter"), Chain("catchment-sums")
        self._third = Chain("catchment-joins")

    def start(
        self, array: torch.Tensor, out: torch.Tensor, layout: ShardLayout, *, tag: int, doing: str, then: Then
    ) -> Flight:
        """Sum a layer's gradients over the partition group.

        Args:
            array: (layout.padded,) this rank's; overwritten.
            out: (layout.chunk,) for the sum of this rank's chunk.
            tag: the same on all ranks.
            doing: what it is, for messages.
            then: called with `out` from a thread, in the order of the calls.
        """
        flight = Flight(doing)
        between, inside = self._path.between.communicator, self._path.inside.communicator
        last = self._path.inside if between is None else self._path.between

        def summed() -> None:
            work, line, follows = then(out)
            if follows is None:
                flight.end(work, line)
            else:

                def done() -> None:
                    follows()
                    flight.end(None, line)

                self._third.follow(work, line, flight, done)

        def leave_node() -> None:
            assert between is not None
            lane = array[self._lane * layout.chunk :]
            work = between.reduce_scatter(lane, out, places=layout.between_nodes, scaling=self._scaling, tag=tag)
            self._second.follow(work, self._path.between, flight, summed)

        try:
            if between is not None:
                first = None
                if inside is not None:
                    places = layout.in_node
                    first = inside.reduce_scatter(array, array, places=places, scaling=self._scaling, tag=tag)
                self._first.follow(first, self._path.inside, flight, leave_node)
            elif inside is not None:
                work = inside.reduce_scatter(array, out, scaling=self._scaling, tag=tag)
                self._second.follow(work, self._path.inside, flight, summed)
            else:
                out.copy_(array)
                self._second.follow(None, last, flight, summed)
        except CollectiveError as error:
            flight.fail(self._path.inside.explained(error, doing))
        return flight

    def close(self) -> None:
        """End its threads."""
        self._first.close()
        self._second.close()
        self._third.close()
