"""Gradients of a rank: gathered in flat memory layer by layer, summed over the groups, accumulated in its shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

import torch

from catchment.host.collectives import Work
from catchment.host.torch.sharded.arenas import Arena, Places
from catchment.host.torch.sharded.chain import Flight
from catchment.host.torch.sharded.layout import ShardLayout
from catchment.host.torch.sharded.links import Line, Links
from catchment.host.torch.sharded.scatter import Scatterer
from catchment.host.torch.sharded.sums import Sums

SHARED: Final = 3
"""Layers whose gradients are on their way, or being made."""


@final
class Gradients:
    """The gradients of all layers of one rank, layer by layer in one order on all ranks."""

    def __init__(  # noqa: PLR0917
        self,
        layouts: Sequence[ShardLayout],
        names: Sequence[str],
        own: Sequence[bool],
        dtype: torch.dtype,
        sums: Sums,
        links: Links,
        scatterer: Scatterer,
        *,
        two_hop: bool,
    ) -> None:
        """`own`: layers with memory of their own; `dtype`: of the gradients that autograd makes."""
        self._layouts, self._names = layouts, names
        self._sums, self._links, self._scatterer = sums, links, scatterer
        self._two_hop = two_hop
        self._places = Places([layout.padded for layout in layouts], own, SHARED)
        self._made = Arena(self._places.pieces, dtype)
        self._summed = self._made if sums.dtype == dtype else Arena(self._places.pieces, sums.dtype)
        self._chunks = Arena([piece // links.groups.partition_size for piece in self._places.pieces], sums.dtype)
        self._flights: dict[int, tuple[int, Flight]] = {}  # by piece: the layer whose gradients it has
        self._arrived: deque[int] = deque()
        self._missing = [0] * len(layouts)
        self._seen: set[int] = set()
        self._finals: list[tuple[int, Flight, bool]] = []  # layer; whether it is summed over the replicas last
        self.first, self.last = True, True
        self.finished = False

    @property
    def nbytes(self) -> int:
        """Memory of gradients that are on their way."""
        return self._made.nbytes + self._chunks.nbytes + (self._summed.nbytes if self._summed is not self._made else 0)

    def has(self, layer: int) -> bool:
        """Whether a layer's gradients are awaited, or were there, in this micro-step."""
        return layer in self._seen

    def begin(self, *, first: bool, last: bool) -> None:
        """A micro-step begins."""
        self.first, self.last = first, last
        self._arrived.clear()
        self._seen.clear()
        self.finished = False
        if first:
            self._finals = []

    def arrive(self, layer: int, expected: int) -> torch.Tensor:
        """Zeros for the gradients of a layer, flat, of which `expected` will be told as `complete`."""
        place = self._places.of[layer]
        for other in [other for other in self._arrived if self._places.of[other] == place]:
            while self._arrived and other in self._arrived:
                self._send(self._arrived.popleft())
        if place in self._flights:
            self._flights.pop(place)[1].wait()
        self._arrived.append(layer)
        self._seen.add(layer)
        self._missing[layer] = expected
        return self._made[place][: self._layouts[layer].padded].zero_()

    def complete(self, layer: int) -> bool:
        """One more gradient of a layer is there; True if it was the last."""
        self._missing[layer] -= 1
        while self._arrived and self._missing[self._arrived[0]] <= 0:
            self._send(self._arrived.popleft())
        return self._missing[layer] <= 0

    def finish(self) -> None:
        """No gradient of this micro-step is to come: what is missing is zero."""
        while self._arrived:
            self._send(self._arrived.popleft())
        for layer in reversed(range(len(self._layouts))):
            if layer not in self._seen:
                self.arrive(layer, 0)
                self._send(self._arrived.popleft())
        self.finished = True

    def wait(self) -> None:
        """Block until all sums of this step are in: of its last micro-step, and of those before it."""
        for layer, flight, replicated in self._finals:
            flight.wait()
            if replicated:
                self._sums.collect(layer)
        self._finals = []
        self._flights.clear()

    def _send(self, layer: int) -> None:
        place, layout = self._places.of[layer], self._layouts[layer]
        array = self._summed[place][: layout.padded]
        self._sums.enter(self._made[place][: layout.padded], array)
        first, last = self.first, self.last

        def then(chunk: torch.Tensor) -> tuple[Work | None, Line, Callable[[], None] | None]:
            replicas = self._links.replicas
            if not self._two_hop:  # layers behind this one are under way meanwhile
                return self._sums.join(chunk, replicas), replicas, partial(self._sums.add, layer, chunk, first=first)
            self._sums.add(layer, chunk, first=first)
            return self._sums.replicate(layer, replicas) if last else None, replicas, None

        flight = self._scatterer.start(
            array,
            self._chunks[place][: layout.chunk],
            layout,
            tag=layer,
            doing=f"the gradients of layer {self._names[layer]}",
            then=then,
        )
        self._flights[place] = (layer, flight)
        self._finals.append((layer, flight, last and self._two_hop and self._links.replicas.communicator is not None))
