"""Waits until a network has done with every frame that its hosts have sent."""

from __future__ import annotations

import select
import time
from collections.abc import Iterable
from pathlib import Path

from namespace_sockets import packet_socket
from scapy.layers.l2 import ARP, Ether

from catchment.controlplane.topology import Host, Switch
from catchment.sim.lab.mininet import MininetNetwork
from catchment.sim.lab.mininet.naming import host_interface

_ARP_TYPE = 0x0806
_AGAIN = 1.0  # seconds after which a question is asked again: faults may have eaten it
_TIMEOUT = 120.0


def settle(network: MininetNetwork) -> None:
    """Every host asks each switch of its tree for its address: the answers come behind whatever was on the way.

    Twice, since what some hosts sent may be on its way down to others while these are asked first.
    """
    processes = network.state().hosts
    for _ in range(2):
        for host in network.topology.hosts.values():
            if not host.nics[0].shm:
                _ask(Path(f"/proc/{processes[host.name]}/ns/net"), host, _switches(network, host))


def _switches(network: MininetNetwork, host: Host) -> list[Switch]:
    """The host's own switch, and those that this one is connected with."""
    own, links = host.link.switch, network.topology.links
    near = {own, *(end.switch for link in links if own in (link.a.switch, link.b.switch) for end in (link.a, link.b))}
    return [network.topology.switch(name) for name in sorted(near)]


def _ask(namespace: Path, host: Host, switches: Iterable[Switch]) -> None:
    with packet_socket(namespace, host_interface(0), _ARP_TYPE) as asker:
        for switch in switches:
            question = ARP(op=1, hwsrc=host.mac, psrc=str(host.ip.ip), pdst=str(switch.ip))
            frame = bytes(Ether(src=host.mac, dst="ff:ff:ff:ff:ff:ff", type=_ARP_TYPE) / question)
            deadline, again, answered = time.monotonic() + _TIMEOUT, 0.0, False
            while not answered:
                now = time.monotonic()
                assert now < deadline, f"{host.name} has no answer from {switch.name} for {_TIMEOUT:g} s"
                if now >= again:
                    asker.send(frame)
                    again = now + _AGAIN
                if select.select([asker], [], [], max(0.0, again - now))[0]:
                    heard = asker.recv(2048)
                    answered = heard[20:22] == b"\x00\x02" and heard[28:32] == switch.ip.packed
