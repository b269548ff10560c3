"""What a topology's cables mean, worked out once: ports, racks, rails, and the spanning tree of plain traffic.

A topology is a value, so whatever follows from it is computed at the first question and kept: planning asks the same
of every switch, and a walk over all hosts at each would make it quadratic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from catchment.controlplane.topology.model import Host, Link, PortRef

Ports = Mapping[int, Host | PortRef]
"""Port number -> what is plugged in there: a host's NIC or another switch's port."""


class Wiring:
    """Answers about the cables of one topology.

    Args:
        switches: names, in the topology's order.
        nics: of every host.
        links: between switches.
        racks: rack -> its switches.
        rails: rail -> its switches.
    """

    def __init__(
        self,
        switches: Iterable[str],
        nics: Iterable[Host],
        links: Iterable[Link],
        racks: Mapping[str, tuple[str, ...]],
        rails: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._switches = tuple(switches)
        self._nics = tuple(nics)
        self._links = tuple(links)
        self._racks, self._rails = racks, rails

    @cached_property
    def ports(self) -> Mapping[str, Ports]:
        """Switch -> its ports that something is plugged into, in their order."""
        found: dict[str, dict[int, Host | PortRef]] = {name: {} for name in self._switches}
        for nic in self._nics:
            found[nic.link.switch][nic.link.port] = nic
        for link in self._links:
            for end, other in ((link.a, link.b), (link.b, link.a)):
                found[end.switch][end.port] = other
        return {name: dict(sorted(ports.items())) for name, ports in found.items()}

    @cached_property
    def trunks(self) -> Mapping[str, Mapping[int, PortRef]]:
        """Switch -> its ports to other switches, and the other end of each."""
        return {
            name: {port: peer for port, peer in ports.items() if isinstance(peer, PortRef)}
            for name, ports in self.ports.items()
        }

    @cached_property
    def nics(self) -> Mapping[str, tuple[Host, ...]]:
        """Switch -> the hosts' NICs on it."""
        return {
            name: tuple(peer for peer in ports.values() if isinstance(peer, Host)) for name, ports in self.ports.items()
        }

    @cached_property
    def rack_of(self) -> Mapping[str, str]:
        """Switch -> its rack; spines are left out."""
        return _owners(self._racks)

    @cached_property
    def rail_of(self) -> Mapping[str, str]:
        """Switch -> its rail; empty where there are none."""
        return _owners(self._rails)

    @cached_property
    def tree(self) -> Mapping[str, Mapping[int, PortRef]]:
        """Switch -> the part of `trunks` that a spanning tree keeps (of each island of switches)."""
        kept: dict[str, dict[int, PortRef]] = {name: {} for name in self._switches}
        reached: set[str] = set()
        for start in sorted(self._switches):
            if start in reached:
                continue
            reached.add(start)
            queue = [start]
            for here in queue:
                for port, peer in self.trunks[here].items():
                    if peer.switch not in reached:
                        reached.add(peer.switch)
                        queue.append(peer.switch)
                        kept[here][port] = peer
                        kept[peer.switch][peer.port] = PortRef(here, port)
        return kept

    def routes(self, switch: str) -> Iterator[tuple[Host, int]]:
        """Every NIC that a switch reaches over the tree, with the switch's port towards it."""
        for nic in self.nics[switch]:
            yield nic, nic.link.port
        for port, first in self.tree[switch].items():
            queue = [(first.switch, switch)]
            for here, before in queue:
                for nic in self.nics[here]:
                    yield nic, port
                queue += [(peer.switch, here) for peer in self.tree[here].values() if peer.switch != before]


def _owners(groups: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {member: name for name, members in groups.items() for member in members}
