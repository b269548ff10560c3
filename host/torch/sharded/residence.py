"""Which layers are gathered, into which memory, and when they may give way to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import final

import torch

from catchment.host.torch.sharded.arenas import Arena, Places
from catchment.host.torch.sharded.chain import Flight
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.plan import Plan

Gather = Callable[[int, torch.Tensor], Flight]
"""Starts the gather of a layer into a flat buffer."""


@final
class Residence:
    """Gathered layers. A layer is always in the same memory, since autograd keeps views of it.

    Layers that share memory take turns in it: with `prefetch` + 2 pieces, two layers compute while others arrive.
    """

    def __init__(
        self, layouts: Sequence[ShardLayout], own: Sequence[bool], dtype: torch.dtype, prefetch: int, gather: Gather
    ) -> None:
        """`own`: layers with memory of their own."""
        self._places = Places([layout.padded for layout in layouts], own, prefetch + 2)
        self._own = own
        self._arena = Arena(self._places.pieces, dtype)
        self._layouts = layouts
        self._gather = gather
        self._prefetch = prefetch
        self._owner = [-1] * len(self._places.pieces)
        self._flights: list[Flight | None] = [None] * len(self._places.pieces)
        self._busy: set[int] = set()
        self.gathers = 0

    @property
    def nbytes(self) -> int:
        """Memory of all gathered layers."""
        return self._arena.nbytes

    def memory(self, layer: int) -> torch.Tensor:
        """The flat buffer of a layer."""
        return self._arena[self._places.of[layer]][: self._layouts[layer].padded]

    def usable(self, layer: int) -> bool:
        """Whether what is in its memory is the layer: while it computes, or once gathered into memory of its own."""
        if layer in self._busy:
            return True
        place = self._places.of[layer]
        return self._own[layer] and self._owner[place] == layer and self._flights[place] is None

    def forget(self) -> None:
        """The shards have changed: what is in memory is no layer any more."""
        for place, flight in enumerate(self._flights):
            if flight is not None:
                flight.wait()
            self._owner[place], self._flights[place] = -1, None

    def use(self, layer: int, plan: Plan) -> None:
        """A layer computes from now on, until `release`; those that follow in the plan are gathered."""
        plan.use(layer)
        self._busy.add(layer)
        self._start(layer)
        self.ahead(plan)
        place = self._places.of[layer]
        flight = self._flights[place]
        if flight is not None:
            flight.wait()
            self._flights[place] = None

    def release(self, layer: int, plan: Plan) -> None:
        """A layer computes no more: others may take its memory."""
        self._busy.discard(layer)
        self.ahead(plan)

    def release_all(self) -> None:
        """No layer computes any more."""
        self._busy.clear()

    def ahead(self, plan: Plan) -> None:
        """Gather the next layers of the plan, as far as there is memory for them."""
        for layer in plan.ahead(self._prefetch):
            if self._owner[self._places.of[layer]] in self._busy - {layer}:
                return
            self._start(layer)

    def _start(self, layer: int) -> None:
        place = self._places.of[layer]
        if self._owner[place] == layer:
            return
        flight = self._flights[place]
        if flight is not None:
            flight.wait()  # gathered ahead, and not used
        self._owner[place] = layer
        self.gathers += 1
        self._flights[place] = self._gather(layer, self.memory(layer))
