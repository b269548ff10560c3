"""Partition, replication, lane and node groups divide a world, and refuse one that cannot be divided."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.groups import Groups, node_size_of, partition_sizes


@st.composite
def groups(draw: st.DrawFn) -> Groups:
    """Any division of up to 64 ranks."""
    node_size = draw(st.integers(1, 16))
    world = node_size * draw(st.integers(1, 64 // node_size))
    return Groups.of(world, draw(st.sampled_from(list(partition_sizes(world, node_size)))), node_size)


@given(groups())
def test_each_kind_of_group_divides_the_world(divided: Groups) -> None:
    for kind, found in divided.all().items():
        assert sorted(rank for group in found for rank in group) == list(range(divided.world)), kind


@given(groups())
def test_a_rank_and_its_groups_agree(divided: Groups) -> None:
    for rank in range(divided.world):
        partition, replication = set(divided.partition(rank)), set(divided.replication(rank))
        lane, node = set(divided.lane(rank)), set(divided.node(rank))
        assert partition & replication == lane & node == {rank}
        assert lane | node <= partition
        assert len(partition) == divided.partition_size == len(lane) * len(node)
        assert len({divided.number(other) for other in replication}) == 1
        assert len({other // divided.node_size for other in node}) == 1
        assert len({other // divided.node_size for other in lane}) == divided.nodes


def test_the_papers_example() -> None:
    divided = Groups.of(32, 16, 8)
    assert divided.partition(19) == tuple(range(16, 32))
    assert divided.replication(19) == (3, 19)
    assert divided.lane(19) == (19, 27)
    assert divided.node(19) == tuple(range(16, 24))


@pytest.mark.parametrize(
    ("world", "partition", "node", "words"),
    [
        (12, 8, 4, "does not divide a world of 12: give one of 1, 2, 4, 12"),
        (12, 3, 4, "fits no nodes of 4 ranks"),
        (10, 2, 4, "10 ranks are no whole number of nodes of 4"),
        (0, 1, 1, "world is 0"),
        (8, True, 1, "partition_size is True"),
        (8, 2, -1, "node_size is -1"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(world: int, partition: int, node: int, words: str) -> None:
    with pytest.raises(ShardingError, match=words):
        Groups.of(world, partition, node)


def test_nodes_are_found_from_their_names() -> None:
    assert node_size_of(["a", "a", "b", "b"]) == 2
    assert Groups.of_nodes(["a", "a", "b", "b"], 4).node(3) == (2, 3)
    with pytest.raises(ShardingError, match=r"unequal numbers of ranks \(a 2, b 1\)"):
        node_size_of(["a", "a", "b"])
    with pytest.raises(ShardingError, match="ranks of node a are not consecutive"):
        node_size_of(["a", "b", "a", "b"])
