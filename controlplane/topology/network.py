"""The whole network as one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Self

from catchment.controlplane.topology.errors import TopologyError
from catchment.controlplane.topology.model import Host, Link, Ring, Switch
from catchment.controlplane.topology.schema import read_topology
from catchment.controlplane.topology.wiring import Ports, Wiring
from catchment.wire.generated.constants import FEW_WORKERS, MAX_WORKERS


@dataclass(frozen=True, slots=True)
class Topology:
    """Switches, hosts and the links between them; the function that builds it checks its consistency.

    Attributes:
        name: of the network.
        switches: by name; where workers are BY_PORTS, FEW_WORKERS if there are no more ports, else MAX_WORKERS.
        hosts: by name; each as its first NIC, with the others in it.
        links: between switches.
        mtu: of every link, bytes.
        racks: rack -> its switches; the hosts on them are in it. A switch in no rack is a spine.
        rails: rail -> its switches: planes that share hosts and nothing else; empty when there is one plane.
        rings: rails without switch programs, by name; no rail has the name of a ring.
        wiring: what follows from all this about ports, racks, rails and the spanning tree.
    """

    name: str
    switches: Mapping[str, Switch]
    hosts: Mapping[str, Host]
    links: tuple[Link, ...] = ()
    mtu: int = 1500
    racks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rails: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rings: Mapping[str, Ring] = field(default_factory=dict)
    wiring: Wiring = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "switches", dict(self._built()))
        wiring = Wiring(self.switches, self.nics(), self.links, self.racks, self.rails)
        object.__setattr__(self, "wiring", wiring)

    def _built(self) -> Iterator[tuple[str, Switch]]:
        """Every switch, with the workers that its program is built for."""
        ports = Counter(
            end.switch for end in chain((nic.link for nic in self.nics()), *((link.a, link.b) for link in self.links))
        )
        for name, switch in self.switches.items():
            chosen = switch.workers or (FEW_WORKERS if ports[name] <= FEW_WORKERS else MAX_WORKERS)
            yield name, replace(switch, workers=chosen)

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
            have = ", ".join(self.hosts) or "none"
            raise TopologyError(f"no host {name!r} in topology {self.name}; it has: {have}") from None

    def nics(self) -> Iterator[Host]:
        """Every NIC of every host."""
        return (nic for host in self.hosts.values() for nic in host.nics)

    def rack_of(self, switch: str) -> str | None:
        """The rack that a switch is in; None for a spine."""
        return self.wiring.rack_of.get(switch)

    def rail_of(self, switch: str) -> str | None:
        """The rail that a switch is in; None where there are no rails."""
        return self.wiring.rail_of.get(switch)

    def plane(self, rail: str | None) -> Self:
        """One rail as a topology of its own, each host as its NIC there; all of it for None.

        Raises:
            TopologyError: there is no such rail.
        """
        if rail is None:
            return self
        if rail not in self.rails:
            have = ", ".join(self.rails) or "none"
            raise TopologyError(f"no rail {rail!r} in topology {self.name}; it has: {have}")
        switches = {name: self.switches[name] for name in self.rails[rail]}
        racks = {rack: tuple(name for name in names if name in switches) for rack, names in self.racks.items()}
        return replace(
            self,
            switches=switches,
            hosts={nic.name: replace(nic, others=()) for nic in self.nics() if nic.link.switch in switches},
            links=tuple(link for link in self.links if link.a.switch in switches),
            racks={rack: names for rack, names in racks.items() if names},
            rails={rail: tuple(switches)},
            rings={name: ring for name, ring in self.rings.items() if ring.over == rail},
        )

    def ports(self, switch: str) -> Ports:
        """Port number -> what is plugged in there: a host or another switch's port."""
        return self.wiring.ports[switch]
