"""What a switch counted, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.client import SwitchClient, TableEntry
from controlplane.desired import JOBS
from controlplane.jobs import JobPlan
from controlplane.topology import Host, Topology
from wire.generated.constants import DropReason

DROPS = "drops"


@dataclass(frozen=True, slots=True)
class JobTraffic:
    """Packets of one stream that arrived at one port.

    Attributes:
        job: name of the job, or "?" when it is not in the state file.
        stream: its stream, or "?".
        gen: generation.
        port: ingress port.
        member: what is plugged in there.
        packets: how many.
        bytes: of how many bytes.
    """

    job: str
    stream: str
    gen: int
    port: int
    member: str
    packets: int
    bytes: int


@dataclass(frozen=True, slots=True)
class SwitchStats:
    """The counters of one switch.

    Attributes:
        switch: its name.
        drops: reason -> packets; reasons that never happened are left out.
        jobs: per stream and port.
        ports: port -> what is plugged in.
    """

    switch: str
    drops: dict[str, int]
    jobs: tuple[JobTraffic, ...]
    ports: dict[int, str]


def drops(client: SwitchClient) -> dict[str, int]:
    """Packets dropped by reason; only reasons that happened."""
    names = {int(reason): reason.name for reason in DropReason}
    return {
        names.get(cell.index, f"reason {cell.index}"): cell.packets for cell in client.counter(DROPS) if cell.packets
    }


def switch_stats(topology: Topology, switch: str, client: SwitchClient, jobs: Iterable[JobPlan] = ()) -> SwitchStats:
    """Read the counters of one switch.

    Raises:
        SwitchError: it does not answer, or runs a program without these counters.
    """
    streams = {stream.gen: (job.name, stream.name) for job in jobs for stream in job.streams}
    plugged = {p: peer.name if isinstance(peer, Host) else str(peer) for p, peer in topology.ports(switch).items()}

    def traffic(entry: TableEntry) -> JobTraffic:
        gen, port = int(entry.match["gen"]), int(entry.match["port"])
        job, stream = streams.get(gen, ("?", "?"))
        return JobTraffic(job, stream, gen, port, plugged.get(port, "?"), entry.packets or 0, entry.bytes or 0)

    traffics = sorted((traffic(e) for e in client.direct_counters(JOBS)), key=lambda t: (t.gen, t.port))
    return SwitchStats(switch, drops(client), tuple(traffics), plugged)
