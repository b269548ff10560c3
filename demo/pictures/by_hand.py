"""Jobs that the control plane has planned, on switches in this process; their frames are sent by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from catchment.controlplane.deployment.fabric import forwarding_config
from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology
from catchment.sim.cosim.switch import build_switch, write_config
from catchment.softswitch.inprocess import Switch
from catchment.wire.generated.constants import (
    HEADER_BYTES,
    HEADER_OFFSET,
    UDP_PORT,
    DataType,
    Flag,
    Header,
    PacketType,
)
from catchment.wire.udp_frame import UdpPeer, udp_frame

_SEED = 1


@dataclass(frozen=True, slots=True)
class Heard:
    """A frame that a host gets: its header, and its lanes."""

    header: Header
    lanes: Sequence[int]


def running_switches(topology: Topology, names: Iterable[str]) -> dict[str, Switch]:
    """Switches of a topology with their programs, and the entries that they have before any job."""
    switches = {name: build_switch(topology.switch(name), _SEED) for name in names}
    for name, switch in switches.items():
        write_config(forwarding_config(topology, name), switch)
    return switches


class HandJob:
    """The first stream of a job, and what its members send.

    Args:
        job: a plan whose members are all at one switch.
        topology: what it was planned on; of several rails, the plane of the job's.
        switches: `running_switches`; the job's entries are written here.
    """

    def __init__(self, job: JobPlan, topology: Topology, switches: Mapping[str, Switch]) -> None:
        (config,) = switch_configs(job, topology)
        self._job, self._topology = job, topology
        self._switch = switches[config.switch]
        self._where = topology.switch(config.switch)
        self._stream = job.streams[0]
        self._base = self._stream.share(config.switch).base
        self._hosts = {topology.host(name).link.port: name for name in job.ports}
        write_config(config, self._switch)

    def vector(self, worker: str, seq: int, value: int) -> dict[str, Heard]:
        """A worker sends a vector of one value; what comes out, by the host that gets it."""
        lanes = [value] * self._job.lanes
        header = self._header(worker, PacketType.PA, seq=seq, ack=seq, credit=seq + self._job.slots)
        header = header._replace(dtype=DataType.INT32, lanes=len(lanes))
        return self._inject(worker, header.pack() + struct.pack(f"!{len(lanes)}i", *lanes))

    def heartbeat(self, worker: str, ack: int, credit: int) -> dict[str, Heard]:
        """A worker says what it has and has room for; what comes out, by the host that gets it."""
        return self._inject(worker, self._header(worker, PacketType.HB, seq=0, ack=ack, credit=credit).pack())

    def acknowledge(self, worker: str, seq: int) -> dict[str, Heard]:
        """A worker says that it has a round's sum; what comes out, by the host that gets it."""
        header = self._header(worker, PacketType.ACK, seq=seq, ack=0, credit=0)
        return self._inject(worker, header._replace(flags=Flag(0)).pack())

    def register(self, name: str, seq: int) -> int:
        """A cell of a register array that has one for each slot, in the slot of a sequence number."""
        return self._switch.read_register(name, self._base + seq % self._stream.slots)

    def _header(self, worker: str, kind: PacketType, *, seq: int, ack: int, credit: int) -> Header:
        wid = self._job.workers.index(worker)
        return Header(type=kind, flags=Flag.ACKV, gen=self._stream.gen, wid=wid, seq=seq, ack=ack, credit=credit)

    def _inject(self, worker: str, payload: bytes) -> dict[str, Heard]:
        host = self._topology.host(worker)
        source = UdpPeer(_number(host.mac), int(host.ip.ip), self._job.ports[worker])
        target = UdpPeer(_number(self._where.mac), int(IPv4Address(self._where.ip)), UDP_PORT)
        out = self._switch.inject(host.link.port, udp_frame(payload, source, target))
        return {self._hosts[port]: _heard(frame) for port, frame in out}


def _heard(frame: bytes) -> Heard:
    header = Header.unpack(frame, HEADER_OFFSET)
    lanes = struct.unpack_from(f"!{header.lanes}i", frame, HEADER_OFFSET + HEADER_BYTES)
    return Heard(header, lanes)


def _number(mac: str) -> int:
    return int(mac.replace(":", ""), 16)
