"""Reads what a cluster file says of hosts, and of links between switches, that are not like the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from catchment.controlplane.documents import Section
from catchment.controlplane.topology import Link, Topology
from catchment.sim.performance.cluster import Node
from catchment.sim.performance.cluster_values import byte_time, number_at, quantity_at, some, speed_at
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.quantities import Dimension


def trunk_name(link: Link) -> str:
    """What a link between switches is called: A-B."""
    return f"{link.a.switch}-{link.b.switch}"


def read_rates(hosts: Sequence[Section], trunks: Sequence[Section], topology: Topology) -> Topology:
    """The topology with the rates that sections `hosts` and `trunks` give; of two that name one host the later counts.

    Raises:
        DocumentError: a name that fits nothing, or a rate that is none; with file and line.
    """
    of_hosts, of_trunks = dict(topology.hosts), list(topology.links)
    for section in hosts:
        for name in _named(section, list(topology.hosts), "host"):
            if "link" in section:
                of_hosts[name] = replace(of_hosts[name], rate=_rate(section, "link"))
    for section in trunks:
        section.finish(("name", "rate"))
        named = set(_named(section, [trunk_name(link) for link in topology.links], "link between switches"))
        rate = _rate(section, "rate")
        of_trunks = [replace(link, rate=rate) if trunk_name(link) in named else link for link in of_trunks]
    return replace(topology, hosts=of_hosts, links=tuple(of_trunks))


def read_nodes(hosts: Sequence[Section], topology: Topology, node: Node, peak: float, mfu: float) -> Mapping[str, Node]:
    """The nodes of hosts that are not as `node`, whose GPUs do `mfu` of `peak`; errors as of `read_rates`."""
    speeds: dict[str, tuple[float, float]] = {}
    found: dict[str, Node] = {}
    for section in hosts:
        section.finish(("name", "link", "gpus", "scale_up", "memory", "peak", "mfu", "proxy_link", "proxy_ring"))
        for name in _named(section, list(topology.hosts), "host"):
            before = found.get(name, node)
            top, share = speeds.get(name, (peak, mfu))
            top, share = speed_at(section, "peak", Dimension.FLOPS, top), number_at(section, "mfu", share, 0.001, 1)
            speeds[name] = top, share
            scale_up, link, ring = (
                speed_at(section, key, Dimension.BYTE_RATE, default)
                for key, default in (
                    ("scale_up", before.scale_up), ("proxy_link", before.proxy_link), ("proxy_ring", before.proxy_ring)
                )
            )  # fmt: skip
            found[name] = replace(
                before, gpus=section.integer("gpus", before.gpus, 1, 64), flops=top * share, scale_up=scale_up,
                memory=quantity_at(section, "memory", Dimension.SIZE, before.memory), proxy_link=link, proxy_ring=ring,
            )  # fmt: skip
    return {name: each for name, each in found.items() if each != node}


def _named(section: Section, names: Sequence[str], what: str) -> list[str]:
    """Those that fit the section's `name`, a pattern as of file names."""
    pattern = section.text("name")
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise section.error_at("name", f"no {what} is called {pattern!r}; there are {some(names) or 'none'}")
    return found


def _rate(section: Section, key: str) -> int:
    """Bits a second; it must be there."""
    section.text(key)
    return round(8 * PICOS_PER_SECOND / byte_time(section, key, 0))
