"""Plans a job on a topology: its rail, its tree of switches, and what it holds on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.jobs.allocation import Allocator
from catchment.controlplane.jobs.errors import JobError
from catchment.controlplane.jobs.kind import Kind, StreamKind, all_kinds, kind_of
from catchment.controlplane.jobs.plan import JobPlan, StreamPlan, new_key
from catchment.controlplane.jobs.rails import choose_rail
from catchment.controlplane.jobs.tree import Branch, tree_of
from catchment.controlplane.topology import Topology
from catchment.wire.generated.constants import (
    HEADER_BYTES,
    IPV4_BYTES,
    LANE_BYTES,
    MAX_PARAM_BYTES,
    MAX_WORKERS,
    TAG_BYTES,
    TERM_BITS,
    UDP_BYTES,
    Mode,
)


def plan_job(
    kind: str,
    topology: Topology,
    *,
    name: str,
    workers: Sequence[str],
    root: str | None = None,
    lanes: int | None = None,
    slots: int = 64,
    param_bytes: int | None = None,
    allocator: Allocator | None = None,
    rail: str | None = None,
    streams: tuple[str, ...] = (),
    packed: bool = False,
    tags: bool = False,
) -> JobPlan:
    """Plan a job.

    Args:
        kind: what it does: the name of a registered kind (controlplane/jobs/kinds).
        topology: where.
        name: of the job.
        workers: host names, index by position.
        root: the optimizer node's host name, for kinds that have one.
        lanes: of the switch program; those of the switch at the top by default.
        slots: T, vectors in flight, a power of two.
        param_bytes: payload of a PARAM frame; as much as fits the MTU by default.
        allocator: shared between the jobs of a topology; a new one by default, which is right for the only job.
        rail: the rail to run on; by default the one that does least of those that every member has a NIC on.
        streams: which of the kind's optional streams it has.
        packed: its streams of vectors may have packed lanes.
        tags: its frames carry tags, under a fresh key for each stream.

    Raises:
        JobError: no such kind, an impossible combination, or a switch is full.
    """
    what = kind_of(kind)
    if packed:
        what.check_packed(name)
    allocator = allocator or Allocator(topology)
    _check_root(name, what, root)
    members = [*workers, *([root] if root is not None else [])]
    _check_members(name, workers, members, slots)
    rail = choose_rail(name, topology, members, rail, allocator.load)
    topology = topology.plane(rail)
    hosts = [topology.host(worker) for worker in workers]
    root_host = topology.host(root) if root is not None else None
    tree = tree_of(topology, hosts, root_host, allocator.load)
    _check_programs(name, what, topology, tree)
    if tags:
        _check_tags(name, topology, tree)
    _check_fan_in(name, topology, tree)
    lanes = lanes or topology.switch(tree[0].switch).lanes
    param_bytes = _check_sizes(name, topology, tree, lanes, param_bytes, tail=TAG_BYTES if tags else 0)
    planned = _plan_streams(what.streams_with(streams, name), tree, slots, allocator, packed=packed, tags=tags)
    return JobPlan(
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
        streams=tuple(planned),
        rail=rail,
        rates={m: topology.host(m).rate for m in members if topology.host(m).rate},
        memory={m: topology.host(m).shm for m in members if topology.host(m).shm},
    )  # fmt: skip


def _plan_streams(
    streams: Sequence[StreamKind], tree: Sequence[Branch], slots: int, allocator: Allocator, *, packed: bool, tags: bool
) -> list[StreamPlan]:
    """What each stream holds on the switches of the tree; all have the groups of ports of the first one."""
    planned: list[StreamPlan] = []
    for stream in streams:
        vectors = stream.slots or slots
        shares = []
        for branch in tree:
            # A leaf takes PA on every stream, so even one that only carries heartbeats gets a slot of its own.
            wanted = vectors if stream.mode is not Mode.BCAST else (0 if branch.parent is None else 1)
            group = planned[0].share(branch.switch).group if planned else None
            shares.append(allocator.share(branch.switch, wanted, group=group))
        planned.append(
            StreamPlan(
                stream.name,
                allocator.generation(),
                stream.mode,
                vectors,
                tuple(shares),
                packed and stream.packs,
                new_key() if tags else "",
                TERM_BITS if tags and stream.keys_follow else 0,
            )
        )
    return planned


def _check_root(name: str, kind: Kind, root: str | None) -> None:
    if kind.has_root and root is None:
        raise JobError(f"job {name}: a {kind.name} job needs --root HOST, its optimizer node")
    if root is not None and not kind.has_root:
        raise JobError(f"job {name}: --root is for jobs with an optimizer node, and this one is of kind {kind.name}")


def _check_tags(name: str, topology: Topology, tree: Sequence[Branch]) -> None:
    without = [branch.switch for branch in tree if not topology.switch(branch.switch).tags]
    if without:
        raise JobError(
            f"job {name} has tags, and switch {without[0]} is built without: write `tags: true` into its part of the "
            "topology file and start it again, or make the job without --tags"
        )


def _check_members(name: str, workers: Sequence[str], members: Sequence[str], slots: int) -> None:
    if not 1 <= len(workers) <= MAX_WORKERS:
        raise JobError(
            f"job {name}: {len(workers)} workers; a job takes 1 to {MAX_WORKERS} (max_workers in wire/frame.toml)"
        )
    if len(set(members)) != len(members):
        raise JobError(f"job {name}: a host can take part once only; given: {', '.join(members)}")
    if slots < 1 or slots & (slots - 1):
        raise JobError(f"job {name}: {slots} slots; the number must be a power of two")


def _check_programs(name: str, kind: Kind, topology: Topology, tree: Sequence[Branch]) -> None:
    for branch in tree:
        program = topology.switch(branch.switch).program.name
        serves = [other.name for other in all_kinds() if other.program == program]
        # What a program does that no kind names is its author's business.
        if serves and kind.program != program:
            raise JobError(
                f"job {name}: switch {branch.switch} runs {program}, for jobs of kind {' and '.join(serves)}; kind "
                f"{kind.name} needs {kind.program} (`program:` in the topology)"
            )


def _check_fan_in(name: str, topology: Topology, tree: Sequence[Branch]) -> None:
    for branch in tree:
        built, has = topology.switch(branch.switch).workers, len(branch.members)
        if has > built:
            raise JobError(
                f"job {name}: switch {branch.switch} is built for {built} workers and would have {has}; give it "
                f"`workers: {has}` in the topology and bring it up again, or take fewer"
            )


def _check_sizes(
    name: str, topology: Topology, tree: Sequence[Branch], lanes: int, param_bytes: int | None, *, tail: int
) -> int:
    """The payload of a PARAM frame, after checking that every frame fits with the `tail` behind it."""
    for branch in tree:
        built = topology.switch(branch.switch).lanes
        if built != lanes:
            raise JobError(f"job {name}: {lanes} lanes, but switch {branch.switch} is built for {built}")
    overhead = IPV4_BYTES + UDP_BYTES + HEADER_BYTES + tail
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
