"""`make bench-control-planning`: how long a large network takes to plan, from its file to each switch's entries."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from bench.report import Figure, publish
from catchment.controlplane.deployment.fabric import share_of
from catchment.controlplane.jobs import Allocator, plan_job
from catchment.controlplane.topology import Topology

RACKS, HOSTS, WORKERS, GOAL = 100, 40, 32, 5.0
_SWITCH = (
    "  {name}: {{program: luwu.p4, ip: 10.0.{subnet}.254, mac: '02:00:00:00:{subnet:02x}:fe', device_id: {device}}}"
)
_HOST = "  {name}: {{ip: 10.0.{subnet}.{number}/16, mac: '02:00:00:01:{subnet:02x}:{number:02x}', link: '{link}'}}"


def topology_file() -> Iterator[str]:
    """The lines of a topology of 100 racks with 40 hosts each, and a spine with one."""
    yield "switches:"
    yield _SWITCH.format(name="sp", subnet=0, device=1)
    for rack in range(1, RACKS + 1):
        yield _SWITCH.format(name=f"r{rack}", subnet=rack, device=rack + 1)
    yield "hosts:"
    yield _HOST.format(name="opt", subnet=0, number=1, link=f"sp:{RACKS + 1}")
    for rack in range(1, RACKS + 1):
        for number in range(1, HOSTS + 1):
            yield _HOST.format(name=f"h{rack}-{number}", subnet=rack, number=number, link=f"r{rack}:{number}")
    yield "links:"
    yield from (f"  - [r{rack}:{HOSTS + 1}, sp:{rack}]" for rack in range(1, RACKS + 1))
    yield "racks:"
    yield from (f"  rack{rack}: [r{rack}]" for rack in range(1, RACKS + 1))


def figures() -> list[Figure]:
    """Processor seconds to read the file, plan two jobs over 32 racks, and have all that every switch should hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.yaml")
        path.write_text("\n".join(topology_file()), "utf-8")
        began = process_time()
        topology = Topology.load(path)
    read = process_time()
    allocator = Allocator(topology)
    first, second = ([f"h{rack}-{number}" for rack in range(1, WORKERS + 1)] for number in (1, 2))
    jobs = [
        plan_job("luwu", topology, name="up", workers=first, root="opt", allocator=allocator),
        plan_job("allreduce", topology, name="all", workers=second, allocator=allocator),
    ]
    planned = process_time()
    entries = sum(len(part.entries) for name in topology.switches for part in share_of(name, topology, jobs))
    ended = process_time()
    what = f"{len(topology.switches)} switches, {len(topology.hosts)} hosts"
    return [
        Figure(f"{what}: all, {entries} entries", ended - began, "s", "aim", GOAL, 1.0),
        Figure("its file", read - began, "s", "aim", GOAL),
        Figure("two jobs of 32 workers", planned - read, "s", "aim", GOAL),
        Figure("what every switch should hold", ended - planned, "s", "aim", GOAL),
    ]


if __name__ == "__main__":
    publish("bench-control-planning", figures())
