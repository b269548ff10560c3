"""The settings that a controller starts with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from catchment.controlplane.networks.life import NetworkLife
from catchment.controlplane.state.faults import PortFaults
from catchment.controlplane.topology import Topology


@dataclass(frozen=True, slots=True)
class Timing:
    """How soon things are noticed, in seconds.

    Attributes:
        beat: between two beats of a member.
        silence: without a beat, after which a member is lost.
        reunion: in which a member whose connection broke may come back.
        check: between two looks at who is silent.
        stall: a report of a stall counts this long.
        inquiry: an answer to who is missing holds this long.
        compare: between two looks at whether a switch holds what it should.
        request: for each request to a switch.
        hang: without an answer, after which a switch counts as down though its connection stands.
    """

    beat: float = 0.3
    silence: float = 1.5
    reunion: float = 0.5
    check: float = 0.1
    stall: float = 1.0
    inquiry: float = 0.3
    compare: float = 2.0
    request: float = 2.0
    hang: float = 1.2


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a controller.

    Attributes:
        topology: its network.
        addresses: gRPC address of every switch.
        folder: where the jobs are noted.
        certificates: folder with its credentials.
        listen: addresses of its service: host:port or unix:PATH.
        timing: how soon things are noticed.
        ports: reaches the faults of switches' ports; None where nothing does.
        prometheus: address and port to answer Prometheus at; None: nowhere.
        network: the emulated network that it ends with; None: the switches are nobody's but their own.
    """

    topology: Topology
    addresses: Mapping[str, str]
    folder: Path
    certificates: Path
    listen: tuple[str, ...]
    timing: Timing = Timing()
    ports: PortFaults | None = None
    prometheus: tuple[str, int] | None = None
    network: NetworkLife | None = None
