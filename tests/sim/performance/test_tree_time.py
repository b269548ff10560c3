"""What a tree of switches costs beside one switch with all hosts: the time of an all-reduce on simulated lines."""

from __future__ import annotations

import pytest

from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.models import LinkModel
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate

LINKS = LinkModel(80, 80, 265_000)
"""100 Gb/s, between switches as well."""


def seconds(per_rack: int, size: int) -> float:
    """The time of an all-reduce of 16 ranks."""
    racks = [[f"r{rack}h{at}" for at in range(per_rack)] for rack in range(16 // per_rack)]
    topology = rack_spine(racks=racks, spines=1 if len(racks) > 1 else 0)
    return simulate("allreduce", Cluster(topology, LINKS), Rounds(size)).rounds[0]


@pytest.mark.parametrize("size", [1 << 14, 1 << 16, 1 << 20])
def test_four_racks_take_little_longer_than_one_switch(size: int) -> None:
    assert 1.0 < seconds(4, size) / seconds(16, size) < 1.3
