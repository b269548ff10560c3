"""A job as a value: its members, and what it holds on every switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

from catchment.controlplane.jobs.allocation import Allocator, Share
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.rails import choose_rail
from catchment.controlplane.jobs.tree import Branch, tree_of
from catchment.controlplane.topology import Host, PortRef, Topology
from catchment.wire.generated.constants import (
    HEADER_BYTES,
    IPV4_BYTES,
    LANE_BYTES,
    MAX_PARAM_BYTES,
    MAX_WORKERS,
    UDP_BYTES,
    UDP_PORT,
    Mode,
)


class JobKind(StrEnum):
    """What a job does."""

    LUWU = "luwu"
    ALLREDUCE = "allreduce"
    SLOTS = "slots"


_SERVES = {
    "luwu.p4": frozenset({JobKind.LUWU, JobKind.ALLREDUCE}),
    "p4sgd.p4": frozenset({JobKind.SLOTS}),
}
"""What each of our switch programs can do; what another program does is its author's business."""


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """One stream of a job.

    Attributes:
        name: gradients, parameters or sums.
        gen: its generation.
        mode: of the top switch; switches below it are leaves.
        shares: what it holds on each switch of the tree.
    """

    name: str
    gen: int
    mode: Mode
    shares: tuple[Share, ...]

    def share(self, switch: str) -> Share:
        """What it holds on a switch of its tree."""
        return next(share for share in self.shares if share.switch == switch)


@dataclass(frozen=True, slots=True)
class JobPlan:
    """A job; make one with `luwu`, `allreduce` or `slots`.

    Attributes:
        name: for people and the state file.
        kind: what it does.
        topology: name of the topology that it was planned on.
        workers: host names, in the order of the worker indices.
        root: the optimizer node's host name; None for all-reduces.
        lanes: 32-bit lanes per frame.
        slots: T of every adding stream.
        param_bytes: largest payload of a PARAM frame.
        ports: UDP port of each host for this job.
        addresses: IPv4 address of each host and of its switch.
        tree: the switches, top first.
        streams: one or two.
        rail: the rail it runs on; None where the topology has none.
        memory: the path of a host's shared-memory port, for those that have one.
        owner: the words that its entries are marked with, so that control planes know their own; may be empty.
    """

    name: str
    kind: JobKind
    topology: str
    workers: tuple[str, ...]
    root: str | None
    lanes: int
    slots: int
    param_bytes: int
    ports: Mapping[str, int]
    addresses: Mapping[str, tuple[str, str]]
    tree: tuple[Branch, ...]
    streams: tuple[StreamPlan, ...]
    rail: str | None = None
    memory: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""

    @classmethod
    def luwu(
        cls,
        topology: Topology,
        *,
        name: str,
        workers: Sequence[str],
        root: str,
        lanes: int | None = None,
        slots: int = 64,
        param_bytes: int | None = None,
        allocator: Allocator | None = None,
        rail: str | None = None,
    ) -> Self:
        """Gradients up to the root, parameters down from it (LuWu, section 3).

        Args:
            topology: where.
            name: of the job.
            workers: host names, index by position.
            root: the optimizer node's host name.
            lanes: of the switch program; the root's switch's by default.
            slots: T, vectors in flight, a power of two.
            param_bytes: payload of a PARAM frame; as much as fits the MTU by default.
            allocator: shared between the jobs of a topology; a new one by default, which is right
                for the only job.
            rail: the rail to run on; by default the one that does least of those that every member has a NIC on.

        Raises:
            JobError: an impossible combination, or a switch is full.
        """
        streams = {"gradients": Mode.REDUCE, "parameters": Mode.BCAST}
        return cls._plan(
            topology,
            kind=JobKind.LUWU,
            name=name,
            workers=workers,
            root=root,
            lanes=lanes,
            slots=slots,
            param_bytes=param_bytes,
            allocator=allocator,
            modes=streams,
            rail=rail,
        )

    @classmethod
    def allreduce(
        cls,
        topology: Topology,
        *,
        name: str,
        workers: Sequence[str],
        lanes: int | None = None,
        slots: int = 64,
        allocator: Allocator | None = None,
        rail: str | None = None,
    ) -> Self:
        """Every worker gets the sum of all; arguments and errors as `luwu`."""
        streams = {"sums": Mode.ALLREDUCE}
        return cls._plan(
            topology,
            kind=JobKind.ALLREDUCE,
            name=name,
            workers=workers,
            root=None,
            lanes=lanes,
            slots=slots,
            param_bytes=None,
            allocator=allocator,
            modes=streams,
            rail=rail,
        )

    @classmethod
    def slots_job(
        cls,
        topology: Topology,
        *,
        name: str,
        workers: Sequence[str],
        lanes: int | None = None,
        slots: int = 64,
        allocator: Allocator | None = None,
        rail: str | None = None,
    ) -> Self:
        """Plan an all-reduce of a few small vectors on one switch that runs p4sgd.p4 (`host.AllReducer`).

        Raises:
            JobError: as `luwu`, or the workers are on several switches.
        """
        return cls._plan(
            topology,
            kind=JobKind.SLOTS,
            name=name,
            workers=workers,
            root=None,
            lanes=lanes,
            slots=slots,
            param_bytes=None,
            allocator=allocator,
            modes={"sums": Mode.ALLREDUCE},
            rail=rail,
        )

    @classmethod
    def _plan(
        cls,
        topology: Topology,
        *,
        kind: JobKind,
        name: str,
        workers: Sequence[str],
        root: str | None,
        lanes: int | None,
        slots: int,
        param_bytes: int | None,
        allocator: Allocator | None,
        modes: Mapping[str, Mode],
        rail: str | None,
    ) -> Self:
        allocator = allocator or Allocator(topology)
        members = [*workers, *([root] if root is not None else [])]
        _check_members(name, workers, members, slots)
        rail = choose_rail(name, topology, members, rail, allocator.load)
        topology = topology.plane(rail)
        hosts = [topology.host(worker) for worker in workers]
        root_host = topology.host(root) if root is not None else None
        if kind is JobKind.SLOTS:
            _check_one_switch(name, hosts)
        tree = tree_of(topology, hosts, root_host, allocator.load)
        _check_programs(name, kind, topology, tree)
        lanes = lanes or topology.switch(tree[0].switch).lanes
        param_bytes = _check_sizes(name, topology, tree, lanes, param_bytes)
        streams: list[StreamPlan] = []
        for stream, mode in modes.items():
            shares = []
            for branch in tree:
                # A leaf takes PA on every stream, so even one that only carries heartbeats gets a slot of its own.
                wanted = slots if mode is not Mode.BCAST else (0 if branch.parent is None else 1)
                group = streams[0].share(branch.switch).group if streams else None
                shares.append(allocator.share(branch.switch, wanted, group=group))
            streams.append(StreamPlan(stream, allocator.generation(), mode, tuple(shares)))
        return cls(
            name=name,
            kind=kind,
            topology=topology.name,
            workers=tuple(workers),
            root=root,
            lanes=lanes,
            slots=slots,
            param_bytes=param_bytes,
            ports={member: allocator.port(member) for member in members},
            addresses={m: (str(topology.host(m).ip.ip), str(topology.switch(topology.host(m).link.switch).ip))
                       for m in members},
            tree=tuple(tree),
            streams=tuple(streams),
            rail=rail,
            memory={m: topology.host(m).shm for m in members if topology.host(m).shm},
        )  # fmt: skip

    def renewed(self, allocator: Allocator) -> Self:
        """The same job with new generations: for members that lost their state. Slots, rows and groups stay.

        Raises:
            JobError: no generation is left.
        """
        return replace(self, streams=tuple(replace(s, gen=allocator.generation()) for s in self.streams))

    def stream(self, name: str) -> StreamPlan:
        """A stream by name."""
        return next(stream for stream in self.streams if stream.name == name)

    def describe(self, host: str) -> dict[str, Any]:
        """What a host's endpoint needs, as plain JSON values.

        Keys: job, kind, host, role (worker, root, peer, slots), wid, local and switch ([ip, port]), one
        key per stream (gradients and parameters, or sums) with the arguments of `host.Stream`, and port ("shm:PATH")
        where the topology says that the switch shares memory with this host.

        Raises:
            JobError: the host is not in the job.
        """
        if host not in self.ports:
            raise JobError(f"host {host} is not in job {self.name}; in it are: {', '.join(self.ports)}")
        ip, switch_ip = self.addresses[host]
        streams = {
            stream.name: {
                "gen": stream.gen,
                "workers": len(self.workers),
                "slots": self.slots,
                "base_seq": 0,
                "lanes": self.lanes,
                "param_bytes": self.param_bytes,
            }
            for stream in self.streams
        }
        if self.root is None:
            role = "slots" if self.kind is JobKind.SLOTS else "peer"
        else:
            role = "root" if host == self.root else "worker"
        return {
            "job": self.name,
            "kind": str(self.kind),
            "host": host,
            "role": role,
            "wid": self.workers.index(host) if host in self.workers else 0,
            "local": [ip, self.ports[host]],
            "switch": [switch_ip, UDP_PORT],
            **({"port": f"shm:{self.memory[host]}"} if host in self.memory else {}),
            **streams,
        }

    def describe_all(self) -> dict[str, Any]:
        """The job and what each member needs, as plain JSON values: what a job file (CATCHMENT_JOB) holds.

        Keys: name, kind, workers, root, lanes, slots, rail, tree (its switches, top first), and members, host by host.
        """
        return {
            "name": self.name,
            "kind": str(self.kind),
            "workers": list(self.workers),
            "root": self.root,
            "lanes": self.lanes,
            "slots": self.slots,
            "rail": self.rail,
            "tree": [branch.switch for branch in self.tree],
            "members": {host: self.describe(host) for host in self.ports},
        }

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The opposite of `to_json`.

        Raises:
            JobError: not such a job.
        """
        try:
            values = dict(data)
            values["kind"] = JobKind(values["kind"])
            values["workers"] = tuple(values["workers"])
            values["addresses"] = {h: (a, s) for h, (a, s) in values["addresses"].items()}
            values["tree"] = tuple(_branch(b) for b in values["tree"])
            values["streams"] = tuple(
                StreamPlan(s["name"], s["gen"], Mode(s["mode"]), tuple(Share(**x) for x in s["shares"]))
                for s in values["streams"]
            )
            return cls(**values)
        except (KeyError, TypeError, ValueError) as error:
            raise JobError(f"not a stored job: {error!r}") from None


def _branch(data: Mapping[str, Any]) -> Branch:
    parent = PortRef(**data["parent"]) if data["parent"] else None
    members = tuple((port, name) for port, name in data["members"])
    return Branch(data["switch"], members, data["up_port"], parent, data["up_wid"])


def _check_members(name: str, workers: Sequence[str], members: Sequence[str], slots: int) -> None:
    if not 1 <= len(workers) <= MAX_WORKERS:
        raise JobError(f"job {name}: {len(workers)} workers; a job takes 1 to {MAX_WORKERS}")
    if len(set(members)) != len(members):
        raise JobError(f"job {name}: a host can take part once only; given: {', '.join(members)}")
    if slots < 1 or slots & (slots - 1):
        raise JobError(f"job {name}: {slots} slots; the number must be a power of two")


def _check_one_switch(name: str, workers: Sequence[Host]) -> None:
    switches = dict.fromkeys(worker.link.switch for worker in workers)
    if len(switches) > 1:
        raise JobError(
            f"job {name}: its workers are on {len(switches)} switches ({', '.join(switches)}), and a slots job has "
            "one; take workers of one switch, or an allreduce job"
        )


def _check_programs(name: str, kind: JobKind, topology: Topology, tree: Sequence[Branch]) -> None:
    for branch in tree:
        program = topology.switch(branch.switch).program.name
        if kind not in _SERVES.get(program, (kind,)):
            wanted = next(other for other, kinds in _SERVES.items() if kind in kinds)
            raise JobError(
                f"job {name}: switch {branch.switch} runs {program}, for jobs of kind "
                f"{' and '.join(sorted(_SERVES[program]))}; kind {kind} needs {wanted} (`program:` in the topology)"
            )


def _check_sizes(name: str, topology: Topology, tree: Sequence[Branch], lanes: int, param_bytes: int | None) -> int:
    """The payload of a PARAM frame, after checking that every frame fits."""
    for branch in tree:
        built = topology.switch(branch.switch).lanes
        if built != lanes:
            raise JobError(f"job {name}: {lanes} lanes, but switch {branch.switch} is built for {built}")
    overhead = IPV4_BYTES + UDP_BYTES + HEADER_BYTES
    room = topology.mtu - overhead
    if lanes * LANE_BYTES > room:
        raise JobError(
            f"job {name}: {lanes} lanes need an MTU of {lanes * LANE_BYTES + overhead}, the topology has {topology.mtu}"
        )
    if param_bytes is None:
        # Whole 64-byte beats where there is room for one.
        return min(MAX_PARAM_BYTES, room // 64 * 64 or room)
    if not 1 <= param_bytes <= min(room, MAX_PARAM_BYTES):
        raise JobError(f"job {name}: param_bytes {param_bytes} is not between 1 and {min(room, MAX_PARAM_BYTES)}")
    return param_bytes
