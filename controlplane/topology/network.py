"""The whole network as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from controlplane.topology.errors import TopologyError
from controlplane.topology.model import Host, Link, PortRef, Switch
from controlplane.topology.schema import read_topology


@dataclass(frozen=True, slots=True)
class Topology:
    """Everything that is plugged together; checked for consistency by whoever builds it."""

    name: str
    switches: Mapping[str, Switch]
    hosts: Mapping[str, Host]
    links: tuple[Link, ...] = ()
    mtu: int = 1500

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a topology file.

        Raises:
            TopologyError: with file and line of what is wrong.
        """
        return cls(*read_topology(Path(path)))

    def switch(self, name: str) -> Switch:
        """A switch by name."""
        try:
            return self.switches[name]
        except KeyError:
            have = ", ".join(self.switches)
            raise TopologyError(f"no switch {name!r} in topology {self.name}; it has: {have}") from None

    def host(self, name: str) -> Host:
        """A host by name."""
        try:
            return self.hosts[name]
        except KeyError:
            have = ", ".join(self.hosts)
            raise TopologyError(f"no host {name!r} in topology {self.name}; it has: {have}") from None

    def ports(self, switch: str) -> dict[int, Host | PortRef]:
        """Port number -> what is plugged in there: a host or another switch's port."""
        found: dict[int, Host | PortRef] = {
            host.link.port: host for host in self.hosts.values() if host.link.switch == switch
        }
        for link in self.links:
            for end, other in ((link.a, link.b), (link.b, link.a)):
                if end.switch == switch:
                    found[end.port] = other
        return dict(sorted(found.items()))
