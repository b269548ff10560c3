"""Gathers of a partition group, counted by the simulator, beside what rings send step by step."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from catchment.sim.performance.baselines import PAYLOAD
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.figures.mics import hierarchical_cut
from catchment.sim.performance.models import FRAME_OVERHEAD
from catchment.sim.performance.partition_gather import sent_between_nodes


def by_hand(rings: Sequence[Sequence[int]], node_size: int) -> int:
    """Chunks that the busiest node sends to others: in each of p - 1 steps every rank passes one on to the next."""
    sent: dict[int, int] = {}
    for ring in rings:
        for _ in range(len(ring) - 1):
            for place, rank in enumerate(ring):
                if rank // node_size != ring[(place + 1) % len(ring)] // node_size:
                    sent[rank // node_size] = sent.get(rank // node_size, 0) + 1
    return max(sent.values())


def test_the_simulator_counts_what_rings_send_step_by_step(rng: random.Random) -> None:
    for _ in range(4):
        node_size, nodes, frames = rng.randrange(1, 5), rng.randrange(2, 5), rng.randrange(1, 9)
        devices = node_size * nodes
        flat = [range(devices)]
        lanes = [range(lane, devices, node_size) for lane in range(node_size)]
        for staged, rings in ((False, flat), (True, lanes)):
            sent = sent_between_nodes(devices, node_size, staged=staged, chunk=frames * PAYLOAD)
            assert sent.data == by_hand(rings, node_size) * frames * (FRAME_OVERHEAD + PAYLOAD)
            assert sent.everything > sent.data


@pytest.mark.parametrize(("devices", "less"), [(16, 46.7), (32, 22.6), (64, 11.1)])
def test_two_stages_send_less_between_nodes_of_eight(devices: int, less: float) -> None:
    one, two = (sent_between_nodes(devices, 8, staged=staged, chunk=8 * PAYLOAD).data for staged in (False, True))
    assert 100 * (1 - two / one) == pytest.approx(less, rel=0.01)
    assert 1 - two / one == pytest.approx(hierarchical_cut(devices, 8), rel=0.01)


@pytest.mark.parametrize(("devices", "node_size"), [(8, 8), (12, 8), (0, 8), (8, 0)])
def test_groups_that_are_no_whole_nodes_are_refused(devices: int, node_size: int) -> None:
    with pytest.raises(PerformanceError, match="no two or more whole nodes"):
        sent_between_nodes(devices, node_size, staged=True)
