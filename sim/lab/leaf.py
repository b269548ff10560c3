"""A switch of one host below a switch of the network: what the host's processes push meets there, and goes on as one.

The job at the network's switch has the host as one worker, and does not know how many processes are behind it.  The
switch of the host takes that worker's place: its port behind the processes' is a UDP socket with the worker's address
(`--port N=udp:...`), and the job's stream runs there as on any switch of a tree (Mode.LEAF).  So a vector of all
processes is added up on the host, through shared memory, and leaves it as soon as it is complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

from catchment.controlplane.jobs import JobPlan, StreamPlan
from catchment.controlplane.jobs.entries import switch_config
from catchment.controlplane.jobs.tree import Branch
from catchment.controlplane.state.desired import write
from catchment.controlplane.topology import Link, PortRef, Switch
from catchment.sim.lab.shm_lab import SWITCH, ShmLab
from catchment.wire.generated.constants import Mode

_ABOVE = "above"
_STREAM = "sums"
_MAC = "02:00:00:00:fd:01"


def uplink_of(member: Mapping[str, Any]) -> str:
    """LOCAL,PEER of the port in a member's place.

    Args:
        member: what the host needs in its job (`JobPlan.describe`).
    """
    (local, port), (switch, switch_port) = member["local"], member["switch"]
    return f"{local}:{port},{switch}:{switch_port}"


def deploy_leaf(lab: ShmLab, member: Mapping[str, Any], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Put a job's stream on the host's switch, which has `uplink_of` the member.

    Args:
        lab: the switch, of the member's lanes.
        member: what the host needs in its job.
        hosts: of the lab, a process on each port.

    Returns:
        What each process needs, as `JobPlan.describe`, but for its place among all processes of the job.

    Raises:
        ControlPlaneError: the switch is full or refuses.
    """
    stream, here = member[_STREAM], lab.topology.switch(SWITCH)
    up = len(hosts) + 1
    above = Switch(_ABOVE, here.program, IPv4Address(member["switch"][0]), _MAC, here.target, here.lanes)
    topology = replace(
        lab.topology,
        switches={SWITCH: here, _ABOVE: above},
        links=(Link(PortRef(SWITCH, up), PortRef(_ABOVE, 1)),),
    )
    branch = Branch(
        switch=SWITCH,
        members=tuple((port + 1, host) for port, host in enumerate(hosts)),
        up_port=up,
        parent=PortRef(_ABOVE, 1),
        up_wid=member["wid"],
    )
    job = JobPlan(
        name=member["job"],
        kind=member["kind"],
        topology=topology.name,
        workers=tuple(hosts),
        root=None,
        lanes=stream["lanes"],
        slots=stream["slots"],
        param_bytes=stream["param_bytes"],
        ports={host: lab.allocator.port(host) for host in hosts},
        addresses={host: (str(topology.host(host).ip.ip), str(here.ip)) for host in hosts},
        tree=(branch,),
        streams=(
            StreamPlan(
                _STREAM,
                stream["gen"],
                Mode.ALLREDUCE,
                stream["slots"],
                (lab.allocator.share(SWITCH, stream["slots"]),),
                packed=bool(stream.get("packed", False)),
                key=str(stream.get("key", "")),
            ),
        ),
    )
    write(switch_config(job, topology, branch), lab.client)
    return [{**job.describe(host), "port": f"shm:{lab.path(host)}"} for host in hosts]
