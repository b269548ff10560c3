"""All switches of a topology at once: programs, plain forwarding, clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.jobs.allocation import FLOOD_GROUP
from catchment.controlplane.jobs.entries import switch_config
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.state.desired import SwitchConfig, present, write
from catchment.controlplane.topology import AUTO_ADDRESS, PortRef, Topology

L2, OWN_ADDRESSES, BINDINGS, SWITCH_ADDRESSES = "l2", "own_addresses", "bindings", "switch_addresses"


def address_of(topology: Topology, switch: str, addresses: Mapping[str, str]) -> str:
    """gRPC address of a switch: that in `addresses`, or the topology's.

    Raises:
        ControlPlaneError: there is no such switch, or it has neither.
    """
    address = addresses.get(switch, topology.switch(switch).grpc)
    if address == AUTO_ADDRESS:
        raise ControlPlaneError(
            f"switch {switch} has no fixed grpc address and network {topology.name} is not up; start it with "
            "`catchment net up`, or write the address into the topology"
        )
    return address


class Fabric:
    """Connections to every switch of a topology; a context manager.

    Attributes:
        topology: what is connected.
        clients: switch name -> client.
    """

    def __init__(self, topology: Topology, connect: Callable[[str], SwitchClient]) -> None:
        self.topology = topology
        self.clients: dict[str, SwitchClient] = {}
        self._connect = connect

    @classmethod
    def connect(
        cls,
        topology: Topology,
        addresses: Mapping[str, str] | None = None,
        *,
        timeout: float = 5.0,
        read_only: bool = False,
    ) -> Self:
        """Connect to every switch.

        Args:
            topology: what to connect to.
            addresses: gRPC address of a switch, for those whose topology entry says `auto`.
            timeout: seconds for each connection and request.
            read_only: look only; whoever controls the switches keeps them.

        Raises:
            SwitchError: names the switch that does not answer.
            ControlPlaneError: a switch's address is `auto` and not in `addresses`.
        """

        def connect(name: str) -> SwitchClient:
            switch = topology.switch(name)
            address = address_of(topology, name, addresses or {})
            return SwitchClient.connect(address, switch.device_id, name=name, timeout=timeout, read_only=read_only)

        fabric = cls(topology, connect)
        try:
            for name in topology.switches:
                fabric.clients[name] = connect(name)
        except BaseException:
            fabric.close()
            raise
        return fabric

    def close(self) -> None:
        """Close every connection; the switches keep what they have."""
        while self.clients:
            self.clients.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def push(self, programs: Mapping[str, PipelineConfig]) -> None:
        """Load each switch's program and set up plain forwarding.

        Args:
            programs: switch name -> compiled program.

        Raises:
            SwitchError: a switch refuses.
        """
        for name in self.topology.switches:
            self.push_switch(name, programs[name])

    def push_switch(self, name: str, program: PipelineConfig) -> None:
        """Load one switch's program and set up plain forwarding on it."""
        self.clients[name].push_pipeline(program)
        write(forwarding_config(self.topology, name), self.clients[name])

    def restore_switch(self, name: str, program: PipelineConfig, jobs: Iterable[JobPlan] = ()) -> None:
        """Give a switch that was restarted all it had: program, forwarding, its share of the jobs.

        Jobs keep their generations: the switch comes back with empty registers, and the senders
        fill them again.

        Raises:
            SwitchError: it does not answer, or refuses.
        """
        if name in self.clients:
            self.clients.pop(name).close()
        self.clients[name] = self._connect(name)
        restore(self.topology, name, self.clients[name], program, jobs)


def restore(
    topology: Topology, switch: str, client: SwitchClient, program: PipelineConfig, jobs: Iterable[JobPlan]
) -> None:
    """Load a switch's program afresh and write all that it should hold.

    Raises:
        SwitchError: it does not answer, or refuses.
    """
    client.push_pipeline(program)
    for part in share_of(switch, topology, jobs):
        write(part, client)


def provide_forwarding(topology: Topology, switch: str, client: SwitchClient) -> bool:
    """Set up plain forwarding on a switch that does not answer for its address yet; entries and groups stay.

    The answer comes last: what was cut short is done by the next call. Without it no member finds the switch.

    Returns:
        Whether it was to be done; a switch that answers is left as it is.

    Raises:
        SwitchError: it does not answer, or refuses.
    """
    config = forwarding_config(topology, switch)
    there = {client.key(entry) for entry in present(config, client)}
    absent = [entry for entry in config.entries if not entry.is_default and client.key(entry) not in there]
    answers = [entry for entry in absent if entry.table == OWN_ADDRESSES]
    if not answers:
        return False
    rest = (entry for entry in config.entries if entry.is_default or (entry in absent and entry not in answers))
    groups = {group: ports for group, ports in config.groups.items() if group not in client.groups()}
    write(SwitchConfig(switch, groups, tuple(rest)), client)
    client.insert(*answers)
    return True


def forwarding_config(topology: Topology, switch: str) -> SwitchConfig:
    """The switch's own address, routes to all hosts, a flood group for the rest, and the addresses each port may use.

    Mirrors p4src/include/addresses.p4, l2.p4 and guard.p4. The flood group follows a spanning tree, so that
    links in a ring do not circulate broadcasts.
    """
    here = topology.switch(switch)
    entries = [
        TableEntry(L2, {}, "flood", {"group": FLOOD_GROUP}, is_default=True),
        TableEntry(OWN_ADDRESSES, {"target": str(here.ip)}, "answer", {"mac": here.mac}),
        TableEntry(BINDINGS, {}, "stranger", is_default=True),
    ]
    for other in topology.switches.values():
        action = "own" if other is here else "other"
        entries.append(TableEntry(SWITCH_ADDRESSES, {"address": str(other.ip)}, action))
    for port, peer in topology.ports(switch).items():
        if isinstance(peer, PortRef):
            entries.append(TableEntry(BINDINGS, {"port": port}, "trunk"))
        else:
            addresses = {"mac": peer.mac, "ip": str(peer.ip.ip)}
            entries.append(TableEntry(BINDINGS, {"port": port}, "host", addresses))
    for nic, port in topology.wiring.routes(switch):  # rails have no link between them: its own NICs alone
        entries.append(TableEntry(L2, {"dst": nic.mac}, "forward", {"port": port}))
    return SwitchConfig(switch, {FLOOD_GROUP: flood_ports(topology, switch)}, tuple(entries))


def share_of(switch: str, topology: Topology, jobs: Iterable[JobPlan]) -> list[SwitchConfig]:
    """All that a switch should hold: its forwarding and its share of the jobs."""
    shares = (switch_config(job, topology, branch) for job in jobs for branch in job.tree if branch.switch == switch)
    return [forwarding_config(topology, switch), *shares]


def flood_ports(topology: Topology, switch: str) -> list[int]:
    """Ports to hosts, and those of the spanning tree."""
    kept = topology.wiring.tree[switch]
    return [port for port, peer in topology.ports(switch).items() if not isinstance(peer, PortRef) or port in kept]


def routes(topology: Topology, switch: str) -> dict[str, int]:
    """Host name -> port towards it on the spanning tree; hosts out of reach are left out."""
    return {nic.name: port for nic, port in topology.wiring.routes(switch)}
