"""Topologies made by a program: what the demo and the tests use instead of a file."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from pathlib import Path

from catchment.controlplane.topology.errors import TopologyError
from catchment.controlplane.topology.model import Host, Link, PortRef, Switch, Target
from catchment.controlplane.topology.network import Topology
from catchment.controlplane.topology.schema import MAX_PORT

_NETWORK = ipaddress.IPv4Network("10.0.0.0/16")


def _switch_ip(index: int) -> ipaddress.IPv4Address:
    return _NETWORK[254 + 256 * index]


def _host(name: str, number: int, link: PortRef) -> Host:
    address = ipaddress.IPv4Interface(f"{_NETWORK[number]}/{_NETWORK.prefixlen}")
    return Host(name, address, f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}", link)


def star(
    hosts: Sequence[str],
    *,
    program: Path,
    name: str = "star",
    target: Target = Target.EMBEDDED,
    lanes: int = 64,
    slots: int = 1024,
    mtu: int = 1500,
    tags: bool = False,
) -> Topology:
    """One switch `s1` with every host on it, host number i on port i+1.

    Raises:
        TopologyError: more hosts than ports, or a name twice.
    """
    if len(set(hosts)) != len(hosts) or not 0 < len(hosts) < 250:
        raise TopologyError(f"a star takes 1 to 249 hosts with different names, not {list(hosts)}")
    switch = Switch("s1", program, _switch_ip(0), "02:00:00:00:fe:01", target, lanes, slots, tags=tags)
    members = {h: _host(h, i + 1, PortRef("s1", i + 1)) for i, h in enumerate(hosts)}
    return Topology(name, {"s1": switch}, members, (), mtu)


def racks(
    hosts: Sequence[Sequence[str]],
    spine_hosts: Sequence[str] = (),
    *,
    program: Path,
    name: str = "racks",
    target: Target = Target.EMBEDDED,
    lanes: int = 64,
    slots: int = 1024,
    mtu: int = 1500,
) -> Topology:
    """A tree of depth two: a rack switch `r1`, `r2`, ... per group of hosts, all on a spine `sp`.

    Rack k's hosts are on its ports 1.., its up port is the next one, on the spine's port k. Hosts of
    the spine itself (the root, usually) follow on its next ports. The racks are called `rack1`, ...

    Raises:
        TopologyError: too many of anything.
    """
    if not hosts or len(hosts) + len(spine_hosts) > MAX_PORT or any(len(r) > 200 for r in hosts):
        raise TopologyError("a tree takes 1 or more racks of up to 200 hosts")
    switches = {
        n: Switch(n, program, _switch_ip(i), f"02:00:00:00:fe:{i + 1:02x}", target, lanes, slots,
                  device_id=i + 1)
        for i, n in enumerate(["sp", *(f"r{k + 1}" for k in range(len(hosts)))])
    }  # fmt: skip
    members: dict[str, Host] = {}
    links = []
    for k, rack in enumerate(hosts):
        for i, host in enumerate(rack):
            members[host] = _host(host, 256 * (k + 1) + i + 1, PortRef(f"r{k + 1}", i + 1))
        links.append(Link(PortRef(f"r{k + 1}", len(rack) + 1), PortRef("sp", k + 1)))
    for i, host in enumerate(spine_hosts):
        members[host] = _host(host, i + 1, PortRef("sp", len(hosts) + i + 1))
    named = {f"rack{k + 1}": (f"r{k + 1}",) for k in range(len(hosts))}
    return Topology(name, switches, members, tuple(links), mtu, racks=named)
