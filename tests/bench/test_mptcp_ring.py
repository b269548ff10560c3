"""The bench of rails beside MPTCP says where it cannot measure, and tells each rank who is next on the first rail."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from bench import mptcp_hosts, mptcp_ring
from bench.rail_gains import HOSTS, settings


def test_without_root_the_row_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mptcp_hosts.os, "geteuid", lambda: 1000)
    figures, notes = mptcp_ring.beside_mptcp(settings(4)["equal"], 1)
    assert figures == []
    assert notes == ["Kernel MPTCP over the same links: not measured, network namespaces need root."]


class Ranks:
    """Takes orders as the processes of ranks would; the last rank is the slowest."""

    told: Sequence[Sequence[str]] = ()

    def __init__(self, module: str, told: Sequence[Sequence[str]], places: Sequence[object]) -> None:
        assert module == "bench.mptcp_member" and len(places) == len(told)
        Ranks.told = told

    def run(self, orders: Sequence[Sequence[int]]) -> list[str]:
        return [json.dumps([9.0] + [float(rank + 1)] * (rounds - 1)) for rank, (_, rounds) in enumerate(orders)]

    def close(self) -> None:
        pass


def test_the_slowest_rank_counts_and_each_knows_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def hosts(ranks: int, rates: Sequence[int]) -> Iterator[list[list[str]]]:
        assert rates == [5, 7]
        yield [[] for _ in range(ranks)]

    monkeypatch.setattr(mptcp_ring, "mptcp_hosts", hosts)
    monkeypatch.setattr(mptcp_ring, "RankProcesses", Ranks)
    assert mptcp_ring.ring_times([5, 7], "mptcp", 3) == [float(len(HOSTS))] * len(mptcp_ring.SIZES)
    for rank, (said,) in enumerate(Ranks.told):
        part = json.loads(said)["parts"][mptcp_ring.RING]
        assert part["ring"] == "mptcp" and part["wid"] == rank
        assert part["next"][0] == mptcp_hosts.address((rank + 1) % len(HOSTS), 0)
