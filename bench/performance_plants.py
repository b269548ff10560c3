"""Bugs that are planted in the simulator: each must turn a row of the comparison red."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from catchment.sim.performance import network, ring_flow
from catchment.sim.performance._performance import Simulation
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.models import NicModel, Timers


def _changed(change: Callable[[Cluster], Cluster]) -> AbstractContextManager[Any]:
    """Every network is made of a cluster that was changed."""
    real = network.Network.__init__

    def made(self: network.Network, cluster: Cluster, *, seed: int = 1) -> None:
        real(self, change(cluster), seed=seed)

    return patch.object(network.Network, "__init__", made)


def _memory_for_nothing() -> AbstractContextManager[Any]:
    return _changed(lambda cluster: replace(cluster, nic=NicModel(pull=0)))


def _pipeline_for_nothing() -> AbstractContextManager[Any]:
    return _changed(lambda cluster: replace(cluster, switch=replace(cluster.switch, pipeline=0)))


@contextmanager
def _multicast_forgets_a_port() -> Iterator[None]:
    """The first member of each multicast gets every copy."""
    real = Simulation

    class Forgetful:
        def __init__(self, seed: int) -> None:
            self._real = real(seed)
            self._first: dict[int, dict[str, Any]] = {}

        def add_down(self, branch: int, **way: Any) -> None:
            first = self._first.setdefault(branch, way)
            self._real.add_down(branch, **first)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._real, name)

    with patch("catchment.sim.performance.network.Simulation", Forgetful):
        yield


@contextmanager
def _late_heartbeats() -> Iterator[None]:
    """Timers are eight times as long."""
    real = Timers.of

    def slow(**given: Any) -> Timers:
        right = real(**given)
        return Timers(8 * right.heartbeat, 8 * right.rto, 8 * right.rto_most, right.resend_delay)

    with patch.object(Timers, "of", staticmethod(slow)):
        yield


PLANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "what a NIC does in memory is not charged": _memory_for_nothing,
    "a multicast forgets a port": _multicast_forgets_a_port,
    "timers are too long": _late_heartbeats,
    "a switch's pipeline takes no time": _pipeline_for_nothing,
}


def _no_windows() -> AbstractContextManager[Any]:
    """Nothing of a ring waits in front of slow lines."""
    return patch.object(ring_flow, "_in_blocks", ring_flow._pipelined)


PLANTS_IN_FLOW: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a ring's hosts do not wait for their windows": _no_windows,
}
"""Bugs of flow mode, which its rows must notice."""
