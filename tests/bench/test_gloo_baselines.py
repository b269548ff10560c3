"""What is made of the times that ranks on gloo measured."""

from __future__ import annotations

import pytest

from bench.gloo_baselines import breakdown, linear
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.glm import GlmTraining, glm_epochs


def test_shares_of_a_step() -> None:
    sharded = {"forward": 3.0, "backward": 5.0, "optimizer": 2.0}
    computing, optimizer, exposed = breakdown(sharded, {"forward": 1.0, "backward": 4.0, "optimizer": 2.0})
    assert (computing.value, optimizer.value, exposed.value) == pytest.approx((50, 20, 20))
    *_, none = breakdown(sharded, {"forward": 3.0, "backward": 6.0, "optimizer": 2.0})
    assert none.value == 0


def test_the_hardware_beside_it_is_the_workloads() -> None:
    """An epoch of the cycle model has as many of its iterations as mini-batches."""
    cluster = Cluster(rack_spine(racks=[["w0", "w1"]], spines=0))
    epoch = glm_epochs(cluster, GlmTraining.parse("rcv1")).rounds[0]
    assert linear(1.0).reference == pytest.approx(1e6 * epoch / (20_242 / 64), rel=0.05)
