"""Places of a layer's chunks in its gathered buffer, and which of them each stage of a gather moves.

A partition group has `nodes` nodes of `lanes` ranks. Rank number i = node * lanes + lane owns chunk i, and a gathered
layer is chunk 0, chunk 1, ... in this order. The three ways to get there in stages:

    node-major  gather between nodes, into chunks of one lane side by side; move each to its place; gather in the node,
                once for each node of the group (the MiCS paper)
    strided     gather between nodes straight into the places; then one gather in the node whose contributions are
                strided (`Strided`): two operations, no copy
    lane-major  number the chunks so that both stages are contiguous: chunk lane * nodes + node is that of (node, lane)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from catchment.host.collectives import Strided

PAIR: Final = 2
"""Chunks are whole pairs of elements, so that those of 2 bytes are whole words of the wire."""


@dataclass(frozen=True, slots=True)
class ShardLayout:
    """How `numel` elements are divided over `nodes` x `lanes` ranks, padded at the end.

    A chunk has as many pairs of elements as torch's `Shard(0)` gives to the first rank of as many, so that rows of a
    pair each are a DTensor whatever the number of ranks.
    """

    numel: int
    nodes: int
    lanes: int

    @property
    def ranks(self) -> int:
        """Ranks of the partition group."""
        return self.nodes * self.lanes

    @property
    def rows(self) -> int:
        """Pairs of elements, without padding beyond the last."""
        return -(-self.numel // PAIR)

    @property
    def chunk(self) -> int:
        """Elements of each rank's part."""
        return PAIR * -(-self.rows // self.ranks)

    @property
    def padded(self) -> int:
        """Elements of the gathered buffer."""
        return self.chunk * self.ranks

    def part(self, number: int) -> slice:
        """The elements of rank `number` in the gathered buffer."""
        return slice(number * self.chunk, (number + 1) * self.chunk)

    def own_rows(self, number: int) -> int:
        """Rows of rank `number` that are not padding."""
        return max(0, min(self.chunk // PAIR, self.rows - number * (self.chunk // PAIR)))

    @property
    def between_nodes(self) -> Strided:
        """One chunk of each node, from that of the own lane in node 0 on."""
        return Strided(step=self.lanes * self.chunk, block=self.chunk)

    @property
    def in_node(self) -> Strided:
        """A chunk of each lane in every node's part, from the buffer's beginning on."""
        return Strided(step=self.chunk, block=self.chunk, blocks=self.nodes, stride=self.lanes * self.chunk)
