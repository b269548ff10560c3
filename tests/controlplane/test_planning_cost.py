"""Planning a network costs as much for each entry in a large one as in a small one."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

from catchment.controlplane.deployment.fabric import share_of
from catchment.controlplane.jobs import Allocator, plan_job
from catchment.controlplane.topology import racks

HOSTS = 4


def calls_and_entries(number: int) -> tuple[int, int]:
    """How often planning a network of so many racks enters a function or goes on in a generator, and its entries."""
    topology = racks([[f"h{r}-{i}" for i in range(HOSTS)] for r in range(number)], ["opt"], program=Path("luwu.p4"))
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    earlier = sys.getprofile()
    sys.setprofile(count)
    try:
        allocator = Allocator(topology)
        workers = [[f"h{r}-{i}" for r in range(4)] for i in range(2)]
        jobs = [
            plan_job("luwu", topology, name="up", workers=workers[0], root="opt", allocator=allocator),
            plan_job("allreduce", topology, name="all", workers=workers[1], allocator=allocator),
        ]
        entries = sum(len(part.entries) for name in topology.switches for part in share_of(name, topology, jobs))
    finally:
        sys.setprofile(earlier)
    return calls, entries


def test_an_entry_costs_the_same_in_a_network_of_four_times_the_racks() -> None:
    (calls, entries), (many_calls, many_entries) = calls_and_entries(10), calls_and_entries(40)
    assert many_entries > 10 * entries
    assert many_calls / many_entries < 1.5 * calls / entries
