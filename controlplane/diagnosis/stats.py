"""What a switch counted, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.state.desired import JOBS
from catchment.controlplane.topology import Host, Topology
from catchment.wire.generated.constants import DropReason
from catchment.wire.rail_report import RailReport

DROPS, REFUSED = "drops", "refused"
REFUSALS = frozenset(
    {
        "UNKNOWN_JOB",
        "WRONG_DIRECTION",
        "FORGED_ARP",
        "OTHER_SWITCH",
        "FORGED_SOURCE",
        "WRONG_UDP_PORT",
        "BEYOND_WINDOW",
        "NOT_PACKED",
        "BAD_TAG",
    }
)
"""Drop reasons that the switch counts by ingress port, too: the sender is wrong, not the frame."""
CONSUMED = "dropped by the program"
"""The cause under which a switch counts the frames of a port that its program sent nowhere. Nearly all are vectors that
it added up: no drops. What the program really dropped is in counter `drops`, by reason."""
_REASONS = 32  # cells of counter refused for each port
_HEARTBEAT = re.compile(r"\.worker(\d+)\.heartbeat$")
_SEQUENCE = 0xFFFF_FFFF
_HALF = 1 << 31


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
class Lag:
    """How far a member is behind the furthest one of its stream, by its last heartbeat.

    Attributes:
        job: name of the job, or "?".
        stream: its stream, or "?".
        member: who it is.
        ack: frames that it expects less than the furthest member.
        credit: frames that it takes less than the furthest member.
    """

    job: str
    stream: str
    member: str
    ack: int
    credit: int


@dataclass(frozen=True, slots=True)
class RailUse:
    """A rail of a job, as one of its ranks says.

    Attributes:
        job: name of the group of jobs.
        rank: who says so.
        report: what it says of the rail.
        share: of the bytes that the rank's rails have carried, 0..1.
    """

    job: str
    rank: int
    report: RailReport
    share: float


@dataclass(frozen=True, slots=True)
class SwitchStats:
    """The counters of one switch; empty where its program has none of the kind.

    Attributes:
        switch: its name.
        drops: reason -> packets; reasons that never happened are left out.
        jobs: per stream and port.
        ports: port -> what is plugged in.
        lags: of the members of each stream that send heartbeats; empty on targets without register access.
        rails: whose sums it makes, of jobs on several rails with a rank on this machine.
        clients: what came of its P4Runtime clients, by the names of `SwitchAdmin.clients`; empty where it is not known.
    """

    switch: str
    drops: dict[str, int]
    jobs: tuple[JobTraffic, ...]
    ports: dict[int, str]
    lags: tuple[Lag, ...] = ()
    rails: tuple[RailUse, ...] = ()
    clients: dict[str, int] = field(default_factory=dict)


def drops(client: SwitchClient) -> dict[str, int]:
    """Packets dropped by reason; only reasons that happened."""
    names = {int(reason): reason.name for reason in DropReason}
    counted = ((cell.index or 0, cell.packets) for cell in client.counter(DROPS))
    return {names.get(index, f"reason {index}"): packets for index, packets in counted if packets}


def drops_of_all(clients: Iterable[SwitchClient]) -> dict[str, int]:
    """The drops by reason of several switches together."""
    totals: Counter[str] = Counter()
    for client in clients:
        totals.update(drops(client))
    return dict(totals)


def refused(client: SwitchClient, ports: Iterable[int], reasons: Iterable[str]) -> dict[tuple[int, str], int]:
    """Frames dropped because the host or switch on a port may not send them: by port and reason, only those counted."""
    cells = [(port, reason) for port in ports for reason in sorted(REFUSALS.intersection(reasons))]
    counted = {
        cell: sum(value.packets for value in client.counter(REFUSED, cell[0] * _REASONS + DropReason[cell[1]]))
        for cell in cells
    }
    return {cell: packets for cell, packets in counted.items() if packets}


def switch_stats(topology: Topology, switch: str, client: SwitchClient, jobs: Iterable[JobPlan] = ()) -> SwitchStats:
    """Read the counters of one switch.

    Raises:
        SwitchError: it does not answer.
    """
    streams = {stream.gen: (job.name, stream.name) for job in jobs for stream in job.streams}
    plugged = {p: peer.name if isinstance(peer, Host) else str(peer) for p, peer in topology.ports(switch).items()}

    def traffic(entry: TableEntry) -> JobTraffic:
        gen, port = int(entry.match["gen"]), int(entry.match["port"])
        job, stream = streams.get(gen, ("?", "?"))
        return JobTraffic(job, stream, gen, port, plugged.get(port, "?"), entry.packets or 0, entry.bytes or 0)

    counted = client.direct_counters(JOBS) if client.p4info.has("table", JOBS) else []
    traffics = sorted((traffic(e) for e in counted), key=lambda t: (t.gen, t.port))
    reasons = drops(client) if client.p4info.has("counter", DROPS) else {}
    return SwitchStats(switch, reasons, tuple(traffics), plugged, tuple(_lags(client, streams, plugged)))


def _lags(client: SwitchClient, streams: Mapping[int, tuple[str, str]], plugged: Mapping[int, str]) -> Iterator[Lag]:
    """Read the heartbeat registers, a row for each job: generation, ack, credit of one worker."""
    registers = {
        int(match.group(1)): name
        for name in client.p4info.names("register")
        if (match := _HEARTBEAT.search(name)) is not None
    }
    if not registers or not client.p4info.has("table", JOBS):
        return
    heard: dict[int, list[tuple[str, int, int]]] = {}
    try:
        for entry in client.read(JOBS):
            gen, worker = int(entry.match["gen"]), entry.params.get("wid")
            if worker is None or int(worker) not in registers:
                continue
            row = int(entry.params["job"])
            held = client.register(registers[int(worker)], row).get(row, 0)
            if held >> 64 == gen:
                member = plugged.get(int(entry.match["port"]), "?")
                heard.setdefault(gen, []).append((member, held >> 32 & _SEQUENCE, held & _SEQUENCE))
    except SwitchError as error:
        if error.code == "UNIMPLEMENTED":
            return
        raise
    for gen, members in sorted(heard.items()):
        job, stream = streams.get(gen, ("?", "?"))
        ack, credit = _furthest([one[1] for one in members]), _furthest([one[2] for one in members])
        for member, own_ack, own_credit in members:
            yield Lag(job, stream, member, (ack - own_ack) & _SEQUENCE, (credit - own_credit) & _SEQUENCE)


def _furthest(numbers: list[int]) -> int:
    """The last on the 32-bit circle; they lie within half of it."""
    return max(numbers, key=lambda n: (n - numbers[0] + _HALF) & _SEQUENCE)
