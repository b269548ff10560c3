"""The bench of trees compares bits before it tells times, and its networks keep to the rate that it names."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from bench.processors import Busy
from bench.trees import HOSTS, MBIT, PER_RACK, all_reduce, networks
from catchment.host.collectives import Communicator
from catchment.sim.lab import tree_lab


class Rank:
    """Adds the same to its array as the others, or something else."""

    def __init__(self, result: float) -> None:
        self._result = result

    def all_reduce(self, own: Any) -> SimpleNamespace:
        own[:] = self._result
        return SimpleNamespace(wait=lambda _: None)


def ranks(*results: float) -> list[Communicator]:
    return [cast("Communicator", Rank(result)) for result in results]


def test_the_bits_are_those_of_every_rank() -> None:
    arrays = [np.full(5, rank, np.float32) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        took, bits = all_reduce(pool, ranks(1.5, 1.5), arrays)
        assert took >= 0 and bits == np.full(5, 1.5, np.float32).tobytes()
        assert [array[0] for array in arrays] == [0, 1], "the next turn begins with the same"
        with pytest.raises(SystemExit, match="different sums"):
            all_reduce(pool, ranks(1.5, 1.25), arrays)


class StartedError(Exception):
    """All switches have started."""


@pytest.mark.parametrize("network", ["one", "tree"])
def test_switches_keep_to_the_rates_of_the_network(network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[int, tuple[str, ...]] = {}

    def start(*, device_id: int, extra: tuple[str, ...], **_: object) -> AbstractContextManager[None]:
        started[device_id] = extra
        return nullcontext()

    def connect(*_: object, **__: object) -> None:
        raise StartedError

    monkeypatch.setattr(tree_lab, "SwitchProcess", start)
    monkeypatch.setattr(tree_lab.Fabric, "connect", connect)
    topology = networks(20 * MBIT)[network]
    with pytest.raises(StartedError), tree_lab.TreeLab(topology):
        pass
    assert started.keys() == {switch.device_id for switch in topology.switches.values()}
    limits = [limit for extra in started.values() for limit in extra if limit != "--fault"]
    nics = [limit for limit in limits if ":rate=20000kbit," in limit]
    links = [limit for limit in limits if f":out.rate={PER_RACK * 20_000}kbit," in limit]
    assert (len(nics), len(links), len(limits)) == {"one": (16, 0, 16), "tree": (16, 8, 24)}[network]
    assert len(nics) == len(HOSTS)


def test_the_processors_of_a_thread_that_works_are_busy() -> None:
    busy = Busy()
    with busy:
        ends = time.thread_time() + 0.2
        while time.thread_time() < ends:
            pass
    assert 0 < busy.share <= 1
