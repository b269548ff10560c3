"""A cluster in frame mode: its lines, switches and NICs, and the streams of jobs on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catchment.controlplane.jobs.tree import Branch
from catchment.sim.performance._performance import Simulation
from catchment.sim.performance.cluster import Cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.models import FRAME_OVERHEAD, NicModel, ProgramModel, Timers, frame_bytes
from catchment.sim.performance.planning import depth_of, path_tree, plan_tree, sums_tree
from catchment.sim.world import GAP_BYTES
from catchment.wire.generated.constants import Mode, PacketType

_SENDS, _RECEIVES, _BOTH = range(3)
_MOST_FRAMES = (1 << 31) - 1


def message_frames(size: int, payload: int) -> int:
    """Frames of a message of so many bytes, with so many in each.

    Raises:
        PerformanceError: more than sequence numbers tell apart.
    """
    frames = max(1, -(-size // payload))
    if frames > _MOST_FRAMES:
        raise PerformanceError(
            f"a message of {size} bytes has {frames} frames, sequence numbers tell {_MOST_FRAMES} apart: "
            "use --mode flow, or several rounds"
        )
    return frames


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a job.

    Attributes:
        senders, receivers: members of the simulation, in the order of the hosts; of an all-reduce they are the same.
        payload: bytes of a frame.
    """

    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    payload: int

    def frames(self, size: int) -> int:
        """Frames of a message of so many bytes.

        Raises:
            PerformanceError: more than sequence numbers tell apart.
        """
        return message_frames(size, self.payload)


@dataclass(frozen=True, slots=True)
class _Shape:
    mode: Mode
    tree: Sequence[Branch]
    payload: int
    slots: int
    window: int
    stream: int


class Network:
    """Lines and nodes of a cluster, and the streams that jobs add.

    Attributes:
        simulation: the compiled part; networks of several rails share one.
        host_lines: host -> its line up and its line down.
        switch_lines: (switch, port) -> the line that leaves there.
        members: (host, bytes of a frame) of each member.
        longest_timeout: of a stream so far, in ps.
    """

    def __init__(self, cluster: Cluster, *, seed: int = 1, simulation: Simulation | None = None) -> None:
        self.cluster = cluster
        self.topology = cluster.topology
        self.simulation = simulation or Simulation(seed)
        self._lines: dict[int, int] = {}  # line -> the time of a byte
        self.switches = {
            name: self.simulation.add_switch(pipeline=cluster.switch.pipeline, frame=cluster.switch.frame)
            for name in self.topology.switches
        }
        self.hosts = {name: self._host() for name in self.topology.hosts}
        self.host_lines: dict[str, tuple[int, int]] = {}
        self.switch_lines: dict[tuple[str, int], int] = {}
        for name, host in self.topology.hosts.items():
            byte = cluster.host_byte(name)
            down = self._line(byte, cluster.switch.queue_bytes)
            self.host_lines[name] = (self._line(byte, 0), down)
            self.switch_lines[host.link.switch, host.link.port] = down
        for link in self.topology.links:
            byte = cluster.trunk_byte(link)
            for end in (link.a, link.b):
                self.switch_lines[end.switch, end.port] = self._line(byte, cluster.switch.queue_bytes)
        self.members: dict[int, tuple[str, int]] = {}
        self.longest_timeout = 0
        self._identities = 0
        self._adding: list[int] = []  # branches with slots

    def line_counts(self) -> list[dict[str, Any]]:
        """What the simulation has counted on each line."""
        return [self.simulation.line(at) for at in self._lines]

    def busiest(self, lines: Sequence[Mapping[str, Any]], now: int) -> float:
        """The largest share of the time until `now` that a line was busy."""

        def busy(byte: int, line: Mapping[str, Any]) -> float:
            frames = sum(line["frames"].values())
            return float((line["bytes"] + GAP_BYTES * frames) * byte / now)

        return max(busy(byte, line) for byte, line in zip(self._lines.values(), lines, strict=True))

    def slots_used(self) -> dict[str, float]:
        """The share of time in which more than 10, 50 and 90 % of a branch's slots waited for a worker; the worst."""
        worst = {"10%": 0.0, "50%": 0.0, "90%": 0.0}
        for branch in self._adding:
            time = self.simulation.occupancy(branch)
            total = sum(time) or 1
            for key, before in worst.items():
                first = 1 + int(int(key[:-1]) / 100 * (len(time) - 1))
                worst[key] = max(before, sum(time[first:]) / total)
        return worst

    def allreduce(self, workers: Sequence[str], *, slots: int | None = None, window: int | None = None) -> Stream:
        """An all-reduce in switches: every worker's sum goes back to all of them.

        Raises:
            PerformanceError: it does not fit the switches.
            JobError: a worker cannot be reached.
        """
        shape = self._sums(Mode.ALLREDUCE, sums_tree(self.cluster, workers, None), slots, window)
        return self._stream(shape, workers, None)

    def reduce(
        self, workers: Sequence[str], root: str, *, slots: int | None = None, window: int | None = None
    ) -> Stream:
        """Sums of the workers' vectors go to the root; errors as of `allreduce`."""
        shape = self._sums(Mode.REDUCE, sums_tree(self.cluster, workers, root), slots, window)
        return self._stream(shape, workers, root)

    def broadcast(
        self, root: str, workers: Sequence[str], *, payload: int | None = None, window: int | None = None
    ) -> Stream:
        """What the root sends goes to every worker; `payload`: bytes of a frame."""
        tree = plan_tree(self.topology, workers, root)
        depth = window or self.cluster.switch.slots
        bytes_of_frame = payload or self.cluster.switch.vector_bytes
        shape = _Shape(Mode.BCAST, tree, bytes_of_frame, depth, depth, self.simulation.add_stream())
        return self._stream(shape, workers, root)

    def send(self, start: str, end: str, *, payload: int, window: int, spine: int = 0) -> Stream:
        """Frames from one host to another, under the same protocol; `spine`: which way, where there are several."""
        tree = path_tree(self.topology, start, end, spine)
        return self._stream(
            _Shape(Mode.BCAST, tree, payload, window, window, self.simulation.add_stream()), [end], start
        )

    def _host(self) -> int:
        model = self.cluster.nic
        if isinstance(model, ProgramModel):
            return self.simulation.add_program(
                receive=model.receive, frame=model.frame, ring_bytes=model.ring_bytes, ring_frames=model.ring_frames
            )
        return self.simulation.add_host(
            push=model.push, pull=model.pull, respond=model.respond, frame=model.frame, fifo_bytes=model.fifo_bytes
        )

    def _sums(self, mode: Mode, tree: Sequence[Branch], slots: int | None, window: int | None) -> _Shape:
        slots = slots or self.cluster.switch.slots
        self.cluster.check_slots(slots)
        if window is not None and not 1 <= window <= slots:
            raise PerformanceError(f"a window of {window} frames: give 1 to {slots}, the slots")
        stream = self.simulation.add_stream()
        return _Shape(mode, tree, self.cluster.switch.vector_bytes, slots, window or slots, stream)

    def _line(self, byte: int, queue_bytes: int) -> int:
        links = self.cluster.links
        line = self.simulation.add_line(byte=byte, latency=links.latency, queue_bytes=queue_bytes, faults=links.faults)
        self._lines[line] = byte
        return line

    def _timers(self, shape: _Shape, hosts: Sequence[str]) -> Timers:
        """The timers of a NIC as the co-simulation sets them, for the slowest line of the stream's.

        Where a host's is faster, a whole window may wait in front of that line: no timeout is shorter than that takes.
        """
        links, depth = self.cluster.links, depth_of(shape.tree)
        ports = [branch.parent for branch in shape.tree if branch.parent]
        lines = {self._lines[self.switch_lines[port.switch, port.port]] for port in ports}
        lines |= {self.cluster.host_byte(host) for host in hosts}
        frame = frame_bytes(shape.payload) * max(lines)
        way = (depth + 1) * (links.latency + frame) + depth * self.cluster.switch.pipeline
        least = self.cluster.nic.least_rto if isinstance(self.cluster.nic, NicModel) else 0
        if min(self.cluster.host_byte(host) for host in hosts) < max(lines):
            least = max(least, 2 * shape.window * frame)
        return Timers.of(frame=frame, way=way, slots=shape.slots, least_rto=least)

    def _stream(self, shape: _Shape, workers: Sequence[str], root: str | None) -> Stream:
        timers = self._timers(shape, [*workers, root] if root else workers)
        self.longest_timeout = max(self.longest_timeout, timers.rto_most)
        sums = shape.mode is not Mode.BCAST
        part = _BOTH if root is None else _SENDS if sums else _RECEIVES
        members = {name: self._member(name, shape, timers, part, wid) for wid, name in enumerate(workers)}
        top = None
        if root is not None:
            part = _RECEIVES if sums else _SENDS
            top = self._member(root, shape, timers, part, 0)
        branches = self._branches(shape, members, root, top)
        self._adding += branches if sums else ()
        outer = tuple(members.values())
        if root is None or top is None:
            return Stream(outer, outer, shape.payload)
        return Stream(outer, (top,), shape.payload) if sums else Stream((top,), outer, shape.payload)

    def _member(self, host: str, shape: _Shape, timers: Timers, part: int, wid: int) -> int:
        member = self._add_member(host, shape, timers, part, wid)
        self.members[member] = (host, shape.payload)
        return member

    def _add_member(self, host: str, shape: _Shape, timers: Timers, part: int, wid: int) -> int:
        kind = PacketType.PARAM if shape.mode is Mode.BCAST else PacketType.PA
        self._identities += 1
        if isinstance(self.cluster.nic, ProgramModel):
            return self.simulation.add_program_member(
                self.hosts[host], part=part, carries=int(kind), identity=self._identities - 1, wid=wid % 256,
                window=shape.window, slots=shape.slots, data_bytes=FRAME_OVERHEAD + shape.payload,
            )  # fmt: skip
        return self.simulation.add_member(
            self.hosts[host], part=part, carries=int(kind), identity=self._identities - 1, window=shape.window,
            slots=shape.slots, data_bytes=FRAME_OVERHEAD + shape.payload, heartbeat=timers.heartbeat, rto=timers.rto,
            rto_most=timers.rto_most, resend_delay=timers.resend_delay * wid, stream=shape.stream,
        )  # fmt: skip

    def _branches(self, shape: _Shape, members: dict[str, int], root: str | None, top: int | None) -> tuple[int, ...]:
        """Wire a stream's rows and ways through its switches."""
        simulation = self.simulation
        ids = {
            branch.switch: simulation.add_branch(
                self.switches[branch.switch],
                mode=int(Mode.LEAF if branch.parent else shape.mode), members=len(branch.members),
                slots=0 if shape.mode is Mode.BCAST else shape.slots, data_bytes=FRAME_OVERHEAD + shape.payload,
                stream=shape.stream,
            )
            for branch in shape.tree
        }  # fmt: skip
        ups = {branch.switch: branch.up_port for branch in shape.tree}
        for branch in shape.tree:
            here = ids[branch.switch]
            for wid, (port, name) in enumerate(branch.members):
                row = simulation.add_row(here, wid=wid, from_root=False)
                line = self.switch_lines[branch.switch, port]
                if name in members:
                    simulation.add_down(here, line=line, to_switch=False, target=members[name])
                    simulation.plug_in(members[name], line=self.host_lines[name][0], to_switch=True, target=row)
                    continue
                below = simulation.add_row(ids[name], wid=0, from_root=True)
                simulation.add_down(here, line=line, to_switch=True, target=below)
                up = ups[name]
                assert up is not None
                simulation.set_up(ids[name], line=self.switch_lines[name, up], to_switch=True, target=row)
        if root is not None and top is not None:
            first = shape.tree[0]
            assert first.up_port is not None
            row = simulation.add_row(ids[first.switch], wid=0, from_root=True)
            line = self.switch_lines[first.switch, first.up_port]
            simulation.set_up(ids[first.switch], line=line, to_switch=False, target=top)
            simulation.plug_in(top, line=self.host_lines[root][0], to_switch=True, target=row)
        return tuple(ids.values())


def frames_by_type(lines: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Frames on lines, by the name of their type."""
    sums = {kind: sum(line["frames"].get(int(kind), 0) for line in lines) for kind in PacketType}
    return {kind.name: count for kind, count in sums.items() if count}
