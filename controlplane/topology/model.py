"""Switches, hosts and links, as values."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

AUTO_ADDRESS = "auto"
"""A switch's gRPC address that is chosen when the network comes up."""
BY_PORTS = 0
"""The workers of a switch whose topology chooses what its program is built for."""


class Target(StrEnum):
    """What executes the switch program."""

    EMBEDDED = "embedded"
    BMV2 = "bmv2"


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch and the program on it.

    Attributes:
        program: P4 source file.
        lanes: 32-bit lanes per packet that the program is built for.
        slots: aggregation slots that the program is built with.
        workers: members that a job may have on the switch: hosts, and switches below it; the program is built for them.
            BY_PORTS: a topology says how many, by the switch's ports.
        ip: the address that hosts send to.
        mac: its hardware address on every port.
        grpc: P4Runtime address ``host:port``, ``unix:PATH``, ``tls:FOLDER@host:port``, or ``auto``.
        device_id: P4Runtime device id.
        tags: its program is built for jobs whose frames carry tags.
    """

    name: str
    program: Path
    ip: ipaddress.IPv4Address
    mac: str
    target: Target = Target.EMBEDDED
    lanes: int = 64
    slots: int = 1024
    workers: int = BY_PORTS
    grpc: str = AUTO_ADDRESS
    device_id: int = 1
    tags: bool = False


@dataclass(frozen=True, slots=True, order=True)
class PortRef:
    """A port of a switch."""

    switch: str
    port: int

    def __str__(self) -> str:
        return f"{self.switch}:{self.port}"


@dataclass(frozen=True, slots=True)
class Host:
    """An end host as one of its NICs shows it.

    Attributes:
        name: of the host.
        ip: the NIC's address.
        mac: its hardware address.
        link: the switch port that it is on.
        others: the same host on its other rails, in the file's order.
        shm: path of the socket at which the switch shares memory with the host, which is on its machine; empty where
            the port is a network interface.
        rate: bits per second of the NIC in each direction; 0 where no limit is given.
    """

    name: str
    ip: ipaddress.IPv4Interface
    mac: str
    link: PortRef
    others: tuple[Host, ...] = ()
    shm: str = ""
    rate: int = 0

    @property
    def nics(self) -> tuple[Host, ...]:
        """All of its NICs, this one first."""
        return (self, *self.others)


@dataclass(frozen=True, slots=True)
class Ring:
    """A rail without a switch program: its members add up among themselves, over the NICs and cables of another rail.

    Attributes:
        over: that rail.
        transport: ``tcp`` or ``mptcp``.
    """

    over: str
    transport: str = "tcp"


@dataclass(frozen=True, slots=True)
class Link:
    """A cable between two switches.

    Attributes:
        a: one end.
        b: the other end.
        rate: bits per second in each direction; 0 where no limit is given.
    """

    a: PortRef
    b: PortRef
    rate: int = 0

    def other(self, switch: str) -> PortRef:
        """The end that is not on this switch."""
        return self.b if self.a.switch == switch else self.a
