"""The layouts of a hierarchical gather put every chunk in its place; the plain one, without strides, does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.host.collectives import CollectiveError, Strided
from catchment.host.torch.sharded.groups import Groups, partition_sizes
from catchment.host.torch.sharded.layout import ShardLayout

WORLDS = [
    Groups.of(world, size, node)
    for node in (1, 2, 3, 4, 8, 16)
    for world in range(node, 65, node)
    for size in partition_sizes(world, node)
]


def strided(layout: ShardLayout) -> list[list[int]]:
    """What every rank has after the two strided stages, of which rank i begins with chunk i alone."""
    size, width = layout.ranks, layout.chunk
    buffers = np.full((size, layout.padded), -1)
    for rank in range(size):
        buffers[rank, layout.part(rank)] = rank
    first, second = layout.between_nodes, layout.in_node
    own = buffers.copy()
    for rank in range(size):
        base = rank % layout.lanes * width
        for node in range(layout.nodes):
            for place in first.places(node):
                there = slice(base + place.start, base + place.stop)
                buffers[rank, there] = own[node * layout.lanes + rank % layout.lanes, there]
    own = buffers.copy()
    for rank in range(size):
        for lane in range(layout.lanes):
            for place in second.places(lane):
                buffers[rank, place] = own[rank - rank % layout.lanes + lane, place]
    return [list(buffer[::width]) for buffer in buffers]


def node_major(groups: Groups) -> list[int]:
    """The paper's: the stages between nodes, to the places, and in the node for each node of the group."""
    nodes, lanes = groups.nodes, groups.lanes
    gathered = [[node * lanes + lane for node in range(nodes)] for lane in range(lanes)]
    out = [-1] * (nodes * lanes)
    for node in range(nodes):
        for lane in range(lanes):
            out[node * lanes + lane] = gathered[lane][node]
    return out


def lane_major(groups: Groups) -> list[int]:
    """Chunk lane * nodes + node is that of (node, lane): the chunks of one lane lie side by side."""
    nodes, lanes = groups.nodes, groups.lanes
    return [chunk for lane in range(lanes) for chunk in [lane * nodes + node for node in range(nodes)]]


def naive(groups: Groups) -> list[int]:
    """One gather between nodes and one in the node, without moving anything."""
    return [node * groups.lanes + lane for lane in range(groups.lanes) for node in range(groups.nodes)]


@pytest.mark.parametrize("chunk", [2, 6])
def test_three_layouts_and_the_pitfall_in_every_world_up_to_64(chunk: int) -> None:
    seen = {(groups.nodes, groups.lanes): groups for groups in WORLDS}
    assert len(seen) > 100
    for (nodes, lanes), groups in seen.items():
        right = list(range(nodes * lanes))
        layout = ShardLayout(chunk * nodes * lanes, nodes, lanes)
        assert layout.chunk == chunk
        assert all(after == right for after in strided(layout)), (nodes, lanes)
        assert node_major(groups) == lane_major(groups) == right
        assert (naive(groups) == right) == (nodes == 1 or lanes == 1), "the pitfall is none"


@given(numel=st.integers(0, 5000), nodes=st.integers(1, 8), lanes=st.integers(1, 8))
def test_chunks_are_pairs_that_hold_all_elements(numel: int, nodes: int, lanes: int) -> None:
    layout = ShardLayout(numel, nodes, lanes)
    assert layout.chunk % 2 == 0
    assert numel <= layout.padded < numel + 2 * layout.ranks + 2
    assert sum(layout.own_rows(number) for number in range(layout.ranks)) == layout.rows
    assert layout.in_node.end(lanes) == layout.padded


@given(numel=st.integers(1, 5000), ranks=st.integers(1, 16))
def test_rows_are_divided_as_dtensors_are(numel: int, ranks: int) -> None:
    layout = ShardLayout(numel, 1, ranks)
    each = -(-layout.rows // ranks)  # as torch.chunk
    dtensor = [max(0, min(each, layout.rows - number * each)) for number in range(ranks)]
    assert [layout.own_rows(number) for number in range(ranks)] == dtensor


@pytest.mark.parametrize(
    ("places", "words"),
    [((4, 8, 1, 8), "overlap"), ((8, 8, 2, 4), "overlap"), ((8, 8, 0, 8), "no blocks")],
)
def test_places_that_cannot_be_are_refused(places: tuple[int, int, int, int], words: str) -> None:
    with pytest.raises(CollectiveError, match=words):
        Strided(*places)
