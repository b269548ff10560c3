"""A cluster: where its hosts, switches and cables are, and the models of each."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from catchment.checkout import ROOT
from catchment.controlplane.topology import Host, Link, PortRef, Switch, Topology
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import PICOS_PER_SECOND, LinkModel, NicModel, ProgramModel, SwitchModel
from catchment.wire.generated.constants import LANE_BYTES

PROGRAM = ROOT / "p4src" / "luwu.p4"
TAG_BYTES = 8
"""What a slot holds beside its lanes: sequence number and workers (p4src/include/slot.p4)."""
_NEAR = 1.25
"""A line is at most so many times as fast, or as slow, as it should be."""


@dataclass(frozen=True, slots=True)
class Straggle:
    """How much longer computations take than they should.

    Attributes:
        sigma: of a lognormal factor with median 1, drawn for each computation of each host.
        slow: host -> a fixed factor on top.
    """

    sigma: float = 0.0
    slow: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """A host.

    Attributes:
        gpus: that share its NIC.
        scale_up: bytes a second of each between them.
        memory: bytes of each.
        flops: operations a second that each really does: peak times utilisation.
        straggle: of computations.
        proxy_link: bytes a second, each way, between a GPU and its parameter proxy.
        proxy_ring: bytes a second of each link of the proxies' ring.
    """

    gpus: int = 1
    scale_up: float = 128e9
    memory: float = 80 * 2.0**30
    flops: float = 62.5e12
    straggle: Straggle = field(default_factory=Straggle)
    proxy_link: float = 16e9
    proxy_ring: float = 16e9


@dataclass(frozen=True, slots=True)
class Failure:
    """Something stops, and comes back.

    Attributes:
        kind: "link" (of a host), "trunk" (a link between switches), "switch", "host" or "rail"; a link, a trunk or a
            switch is the first rail's.
        name: which.
        at, until: ps; `until` None: it does not come back.
    """

    kind: str
    name: str
    at: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Things that stop and come back by chance, each by itself.

    Attributes:
        kind: as of `Failure`.
        names: which.
        every: ps until it fails, from the start or its return; exponential, this is the mean. `lasts`: until it is
            back, likewise.
        within: ps; nothing fails later.
    """

    kind: str
    names: tuple[str, ...]
    every: int
    lasts: int
    within: int


@dataclass(frozen=True, slots=True)
class Rail:
    """One of the networks that every host is on.

    Attributes:
        by: what adds up on it: "switch", or "ring" for hosts on a ring.
        links: its cables.
        start: of a host's software before each message, in ps.
    """

    name: str
    by: str = "switch"
    links: LinkModel = field(default_factory=LinkModel)
    start: int = 0


@dataclass(frozen=True)
class Cluster:
    """What a simulation runs on.

    Attributes:
        topology: a host's or a link's `rate`, if it has one, is what `links` says of the others.
        nodes: hosts that are not as `node` says.
        rails: networks of this topology, each with lines, switches and NICs of its own; () is one, of `links`.
        place: file and line that the topology is from, for messages.
    """

    topology: Topology
    links: LinkModel = field(default_factory=LinkModel)
    switch: SwitchModel = field(default_factory=SwitchModel)
    nic: NicModel | ProgramModel = field(default_factory=NicModel)
    node: Node = field(default_factory=Node)
    nodes: Mapping[str, Node] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    rails: tuple[Rail, ...] = ()
    place: str = ""

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """All hosts, in order."""
        return tuple(self.topology.hosts)

    @property
    def fails(self) -> bool:
        """Whether anything may fail."""
        return bool(self.failures or self.breakdowns)

    @cached_property
    def alike(self) -> bool:
        """Whether all hosts, and all links between switches, are the same."""
        rates = {host.rate for host in self.topology.hosts.values()}, {link.rate for link in self.topology.links}
        return not self.nodes and all(len(each) <= 1 for each in rates)

    def node_of(self, host: str) -> Node:
        """What a host is."""
        return self.nodes.get(host, self.node)

    def host_byte(self, *hosts: str) -> int:
        """The time of a byte on the links of these hosts, of the slowest."""
        return max(_byte(self.topology.hosts[host].rate, self.links.host_byte) for host in hosts)

    def trunk_byte(self, link: Link) -> int:
        """The time of a byte on a link between switches."""
        return _byte(link.rate, self.links.up_byte)

    def check_slots(self, slots: int, streams: int = 1) -> None:
        """See that the slots of so many streams fit a switch.

        Raises:
            PerformanceError: they do not; by how much.
        """
        if slots < 1 or slots & (slots - 1):
            raise PerformanceError(f"{slots} slots: give a power of two")
        needed = streams * slots * (self.switch.lanes * LANE_BYTES + TAG_BYTES)
        if needed > self.switch.sram_bytes:
            raise PerformanceError(
                f"{slots} slots of {self.switch.lanes} lanes need {needed} bytes of a switch's SRAM, "
                f"{needed - self.switch.sram_bytes} more than there are; give fewer `slots` or more `sram`"
            )


def whole_picos(exact: float) -> int:
    """The whole picoseconds nearest to so many, of a byte.

    Raises:
        PerformanceError: they are more than a quarter off, as of a line of 11 Tb/s and more.
    """
    picos = max(1, round(exact))
    if not picos / _NEAR <= exact <= picos * _NEAR:
        raise PerformanceError(
            f"a byte would take {exact:.3g} ps, and lines are simulated in whole ones, so at no more than 8 Tb/s"
        )
    return picos


def _byte(rate: int, default: int) -> int:
    """The time of a byte at a rate in bits a second, in whole ps; 0: the default."""
    return whole_picos(8 * PICOS_PER_SECOND / rate) if rate else default


def rack_spine(
    *,
    racks: Sequence[Sequence[str]],
    spines: int,
    above: Sequence[str] = (),
    slots: int = 1024,
    program: Path = PROGRAM,
) -> Topology:
    """Racks of hosts, each rack's switch on every spine; without spines there is one rack.

    Rack k's hosts are on the ports of switch `rK` from 1, its spines on the next ones, and rack k on port k + 1 of each
    spine. Hosts `above`, optimizer nodes, are on the first spine's next ports, or on the only rack's.

    Raises:
        PerformanceError: several racks and no spine, or an empty rack.
    """
    if not racks or not all(racks):
        raise PerformanceError("every rack needs a host")
    if len(racks) > 1 and spines < 1:
        raise PerformanceError(f"{len(racks)} racks need a spine")
    names = [f"r{k}" for k in range(len(racks))]
    tops = [f"s{k}" for k in range(spines)]
    switches = {name: _switch(name, at, program, slots) for at, name in enumerate([*names, *tops])}
    hosts: dict[str, Host] = {}
    links = []
    for k, rack in enumerate(racks):
        for at, host in enumerate(rack):
            hosts[host] = _host(host, len(hosts) + 1, PortRef(names[k], at + 1))
        links += [Link(PortRef(names[k], len(rack) + 1 + s), PortRef(spine, k + 1)) for s, spine in enumerate(tops)]
    top, first = (tops[0], len(racks) + 1) if tops else (names[0], len(racks[0]) + 1)
    for at, host in enumerate(above):
        hosts[host] = _host(host, len(hosts) + 1, PortRef(top, first + at))
    return Topology("generated", switches, hosts, tuple(links), racks={name: (name,) for name in names})


def _host(name: str, number: int, link: PortRef) -> Host:
    mac = f"02:00:00:{number >> 16:02x}:{number >> 8 & 255:02x}:{number & 255:02x}"
    return Host(name, ipaddress.IPv4Interface((0x0A00_0000 + number, 8)), mac, link)


def _switch(name: str, number: int, program: Path, slots: int) -> Switch:
    address, mac = ipaddress.IPv4Address(0xAC10_0000 + number), f"02:ff:00:00:{number >> 8:02x}:{number & 255:02x}"
    return Switch(name, program, address, mac, slots=slots, device_id=number + 1)
