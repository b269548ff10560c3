"""The formulas of the timed part of `make bench-mics`, worked out by hand for a model of equal layers."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from bench.mics_links import MICRO_STEPS, MODELS, NODE, WORLD, framed, near_losses, rate_of, volume
from bench.mics_member import Order

SHAPE = MODELS["demo"]


def order(partition_size: int, *, hierarchical: bool = True, two_hop: bool = True) -> Order:
    return Order(asdict(SHAPE), (WORLD, partition_size, NODE), hierarchical, two_hop, MICRO_STEPS, 1, {})


def test_two_stages_send_a_lane_of_what_one_sends() -> None:
    one, two = (volume(SHAPE, order(8, hierarchical=staged)) for staged in (False, True))
    assert one.gradients == pytest.approx(4 * SHAPE.parameters * MICRO_STEPS, rel=1e-3)
    assert (two.gathers, two.gradients) == (
        pytest.approx(one.gathers / NODE, abs=1),
        pytest.approx(one.gradients / NODE, abs=1),
    )
    assert one.replicas == two.replicas == 0, "one group has no others to be summed with"


def test_a_group_in_a_node_sends_its_chunks_alone_once_or_in_every_micro_step() -> None:
    two, one = (volume(SHAPE, order(2, two_hop=both)) for both in (True, False))
    assert (two.gathers, two.gradients) == (0, 0)
    assert two.replicas == pytest.approx(4 * SHAPE.parameters / 2, rel=1e-3)
    assert one.replicas == MICRO_STEPS * two.replicas


def test_losses_are_near_those_of_the_same_rank_and_micro_step() -> None:
    ours = [{"losses": [1.0, 2.0]}, {"losses": [3.0, 4.0]}]
    assert near_losses(ours, ours) == (4, 4)
    assert near_losses(ours, ours[::-1]) == (0, 4)
    assert near_losses(ours, [{"losses": [1.0005, 2.0]}, {"losses": [3.01, 4.0]}]) == (3, 4)


def test_links_of_groups_inside_a_node_are_as_slow_as_they_send_little() -> None:
    assert [rate_of(16, (size, True, hops)) for size, hops in ((8, True), (4, False), (2, True), (2, False))] == [
        16, 16, 1, 4,
    ]  # fmt: skip


def test_frames_carry_their_headers() -> None:
    assert framed(256 * 4) == 14 + 20 + 8 + 22 + 256 * 4
