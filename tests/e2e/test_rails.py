"""Hosts with a NIC on each of two rails: jobs on both planes at once, and the failure of one is not the other's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from controlled import ControlledLab
from lab import ROOT
from shapes import LANES, unique
from test_restarts import WORKERS, all_done

from catchment.controlplane.topology import Target, Topology


@pytest.fixture
def rails(target: Target, tmp_path: Path) -> Iterator[ControlledLab]:
    topology = Topology.load(ROOT / "sim" / "topologies" / "two-rails.yaml")
    switches = {n: replace(s, target=target, lanes=LANES[target]) for n, s in topology.switches.items()}
    with ControlledLab(unique(replace(topology, switches=switches), "rails", target), tmp_path) as lab:
        yield lab


@pytest.mark.sampled(4)
def test_jobs_on_two_rails(rails: ControlledLab, rng: random.Random) -> None:
    hosts = [*WORKERS, "opt"]
    sizes = [size // 4 for size in rails.sizes]
    with rails.job("first", WORKERS) as first, rails.job("second", WORKERS) as second:
        used = {job.name: (job.rail, list(job.tree)) for job in rails.operator.jobs()}
        assert used == {"first": ("a", ["spa", "a1", "a2"]), "second": ("b", ["spb", "b1", "b2"])}
        running = [
            rails.start(name, token, hosts, seed=rng.randrange(1 << 32), workers=len(WORKERS), sizes=sizes)
            for name, token in (("first", first), ("second", second))
        ]
        for members in running:
            for member in members.values():
                assert member.event("started") == {"started": True}
        rails.network.kill_switch("a1")
        assert all_done(running[1]) == 1, "the other rail does not notice"
        rails.network.start_switch("a1")
        assert all_done(running[0]) == 1
    rails.wait_until_up()
