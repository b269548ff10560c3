"""The table entries of a job on one switch; mirrors p4src/include/jobs.p4, packed.p4, receivers.p4 and tags.p4."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from catchment.controlplane.client import TableEntry
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.plan import JobPlan, StreamPlan
from catchment.controlplane.jobs.tree import Branch
from catchment.controlplane.state.desired import JOBS, PACKED, RECEIVERS, TAGS, SwitchConfig
from catchment.controlplane.topology import Host, PortRef, Topology
from catchment.wire.generated.constants import UDP_PORT, Mode


def switch_configs(job: JobPlan, topology: Topology) -> list[SwitchConfig]:
    """The configuration of every switch of a job, top first; errors as `switch_config`."""
    return [switch_config(job, topology, branch) for branch in job.tree]


def switch_config(job: JobPlan, topology: Topology, branch: Branch) -> SwitchConfig:
    """The configuration of one switch of a job.

    Raises:
        JobError: as `misfit` says.
    """
    if wrong := _misfit(job, topology, branch):
        raise JobError(wrong)
    groups: dict[int, list[int]] = {}
    entries: list[TableEntry] = []
    for stream in job.streams:
        groups[stream.share(branch.switch).group] = [port for port, _ in branch.members]
        if stream.key:  # first: no frame without a tag is admitted at any moment
            entries += _tags(job, stream, branch)
        entries += _admissions(job, stream, topology, branch)
        entries += _receivers(job, stream, topology, branch)
        if stream.packed:
            entries.append(TableEntry(PACKED, {"gen": stream.gen}, "halves", {}))
    mark = job.owner.encode()
    return SwitchConfig(branch.switch, groups, tuple(replace(entry, metadata=mark) for entry in entries))


def switch_keys(job: JobPlan, branch: Branch) -> SwitchConfig:
    """What a job has on one switch, by key alone: to delete it, whatever the topology has become."""
    groups: dict[int, list[int]] = {stream.share(branch.switch).group: [] for stream in job.streams}
    entries: list[TableEntry] = []
    for stream in job.streams:
        tables = (JOBS, RECEIVERS, *((TAGS,) if stream.key else ()))
        entries += [TableEntry(table, {"gen": stream.gen, "port": port}) for table in tables for port in _ports(branch)]
        if stream.packed:
            entries.append(TableEntry(PACKED, {"gen": stream.gen}))
    return SwitchConfig(branch.switch, groups, tuple(entries))


def slots_of(entry: TableEntry) -> tuple[int, int]:
    """The first slot that an entry of `jobs` holds, and the one after its last; equal where it holds none."""
    if int(entry.params.get("mode", 0)) == Mode.BCAST or "base" not in entry.params:  # its base and mask say nothing
        return 0, 0
    base = int(entry.params["base"])
    return base, base + int(entry.params["mask"]) + 1


def misfit(job: JobPlan, topology: Topology) -> str:
    """Why a job cannot be on the switches of a topology that has changed since it was planned; empty if it can."""
    branches = sorted(job.tree, key=lambda branch: branch.switch in topology.switches)  # what is lost comes first
    return next(filter(None, (_misfit(job, topology, branch) for branch in branches)), "")


def _misfit(job: JobPlan, topology: Topology, branch: Branch) -> str:
    if branch.switch not in topology.switches:
        remove = f"catchment job remove {job.name.partition('/')[0]} --force"  # of a group the whole goes
        return (
            f"job {job.name} runs over switch {branch.switch}, which is not in the topology any more; put the switch "
            f"back into the topology file, or remove the job (`{remove}`) and create it anew"
        )
    plugged = topology.ports(branch.switch)
    for port in _ports(branch):
        peer = plugged.get(port)
        if peer is None:
            has = "no longer has anybody"
        elif isinstance(peer, Host) and peer.name not in job.ports:
            has = f"has {peer.name} now, which is not in the job"
        else:
            continue
        return (
            f"job {job.name} has a member at port {port} of {branch.switch}, where the topology {has}; put the member "
            "back into the topology file, or remove the job (`catchment job remove`) and create it anew"
        )
    return ""


def _ports(branch: Branch) -> list[int]:
    """The ports of a switch that a job uses: those with something to add, and the one towards the parent or root."""
    return [port for port, _ in branch.members] + ([] if branch.up_port is None else [branch.up_port])


def _admissions(job: JobPlan, stream: StreamPlan, topology: Topology, branch: Branch) -> Iterator[TableEntry]:
    plugged = topology.ports(branch.switch)

    def source(port: int) -> dict[str, int | str]:
        _, ip, udp = _address(job, topology, plugged[port])
        return {"src_ip": ip, "src_udp": udp}

    share = stream.share(branch.switch)
    mode = stream.mode if branch.parent is None else Mode.LEAF
    common: dict[str, int | str] = {"mode": int(mode), "job": share.row, "group": share.group}
    for wid, (port, _) in enumerate(branch.members):
        params = {
            **common,
            "wid": wid,
            "own": 1 << wid,
            "base": share.base,
            "mask": max(share.slots, 1) - 1,
            "full": (1 << len(branch.members)) - 1,
            "up_port": branch.up_port or 0,
            "up_wid": branch.up_wid,
            **source(port),
        }
        yield TableEntry(JOBS, {"gen": stream.gen, "port": port}, "worker", params)
    if branch.up_port is not None:
        yield TableEntry(
            JOBS, {"gen": stream.gen, "port": branch.up_port}, "root", {**common, **source(branch.up_port)}
        )


def _tags(job: JobPlan, stream: StreamPlan, branch: Branch) -> Iterator[TableEntry]:
    """The key at each port of the stream, with the worker index that its frames say: a rack's as of one worker."""
    action, params = "keyed", _halves(stream.key)
    if stream.odd_key:
        odd = {f"odd_{half}": value for half, value in _halves(stream.odd_key).items()}
        action, params = "termed", {**params, **odd, "term_bit": 1 << stream.term_bits}
    said = {port: job.workers.index(name) if name in job.workers else wid
            for wid, (port, name) in enumerate(branch.members)}  # fmt: skip
    if branch.up_port is not None:
        said[branch.up_port] = 0
    for port, wid in said.items():
        yield TableEntry(TAGS, {"gen": stream.gen, "port": port}, action, {**params, "wid": wid})


def _halves(text: str) -> dict[str, int | str]:
    key = bytes.fromhex(text)
    return {"k0": int.from_bytes(key[:8], "little"), "k1": int.from_bytes(key[8:], "little")}


def _receivers(job: JobPlan, stream: StreamPlan, topology: Topology, branch: Branch) -> Iterator[TableEntry]:
    switch = topology.switch(branch.switch)
    plugged = topology.ports(branch.switch)
    for port in _ports(branch):
        mac, ip, udp = _address(job, topology, plugged[port])
        params: dict[str, int | str] = {
            "dst_mac": mac,
            "dst_ip": ip,
            "dst_udp": udp,
            "src_mac": switch.mac,
            "src_ip": str(switch.ip),
        }
        yield TableEntry(RECEIVERS, {"gen": stream.gen, "port": port}, "rewrite", params)


def _address(job: JobPlan, topology: Topology, peer: Host | PortRef) -> tuple[str, str, int]:
    if isinstance(peer, Host):
        return peer.mac, str(peer.ip.ip), job.ports[peer.name]
    switch = topology.switch(peer.switch)
    return switch.mac, str(switch.ip), UDP_PORT
