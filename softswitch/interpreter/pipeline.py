"""The v1model pipeline: what happens to a packet between and around the blocks, as in BMv2's simple_switch.

packet -> parser -> verify checksum -> ingress -> clone, resubmit, multicast, drop or unicast
       -> egress -> clone, drop -> compute checksum -> deparser -> recirculate or out
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.types import StructType
from catchment.softswitch.interpreter.bits import BitWriter, PacketIn
from catchment.softswitch.interpreter.errors import too_deep
from catchment.softswitch.interpreter.externs import DROP_PORT, Machine
from catchment.softswitch.interpreter.packet import Packet, Requests
from catchment.softswitch.interpreter.places import Variables
from catchment.softswitch.interpreter.signals import ExitSignal, RejectSignal, StepLimitSignal
from catchment.softswitch.interpreter.state import State
from catchment.softswitch.interpreter.steps import DROP_CAUSE, StepBudget
from catchment.softswitch.interpreter.trace import Trace
from catchment.softswitch.interpreter.values import Struct, copy_of, default_value, overwrite

MAX_PASSES = 64
MAX_EGRESS_CLONES = 1024


class InstanceType(IntEnum):
    """standard_metadata.instance_type."""

    NORMAL = 0
    INGRESS_CLONE = 1
    EGRESS_CLONE = 2
    RECIRCULATED = 4
    REPLICATION = 5
    RESUBMITTED = 6


@dataclass(slots=True)
class Replication:
    """Multicast groups and clone sessions: (port, egress_rid) each; of a session also the bytes to keep (0: all)."""

    groups: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    sessions: dict[int, tuple[list[tuple[int, int]], int]] = field(default_factory=dict)


@dataclass(slots=True)
class Blocks:
    """A packet's headers and metadata, as ingress and egress take them."""

    headers: Struct
    metadata: Struct
    standard: Struct

    def copy(self) -> Blocks:
        made = [copy_of(value) for value in (self.headers, self.metadata, self.standard)]
        return Blocks(*(m for m in made if isinstance(m, Struct)))


@dataclass(slots=True)
class Again:
    """A packet that starts over, with the metadata of a field list."""

    data: bytes
    kept: Struct
    fields: int
    port: int
    type: InstanceType


class Pipeline:
    """Runs packets through one program."""

    def __init__(
        self, program: ir.Program, state: State, replication: Replication, *, max_steps: int, seed: int = 0
    ) -> None:
        self.program = program
        self.state = state
        self.replication = replication
        self.trace = Trace()
        self.steps = StepBudget(max_steps)
        self.dice = random.Random(seed)
        self.now_us: Callable[[], int] = lambda: 0
        self.on_digest: Callable[[str, list[int]], None] | None = None
        self.on_log: Callable[[str], None] | None = None
        self.drops: list[str] = []
        """Why packets of the last `process` were dropped, in order."""
        self._out: list[tuple[int, bytes]] = []
        self._again: list[Again] = []
        self._clone_depth = 0
        self._clones = 0

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """What leaves for one packet that came in by `port`, in order."""
        self._out, self._again, self.drops = [], [], []
        self._clone_depth = self._clones = 0
        self.steps.start()
        try:
            self._passes(port, data)
        except StepLimitSignal as limit:
            self._drop(DROP_CAUSE)
            line = self.steps.report(port, limit.where, self.now_us())
            if line is not None and self.on_log is not None:
                self.on_log(line)
        return self._out

    def _passes(self, port: int, data: bytes) -> None:
        """The packet's first pass, and those that it asks for."""
        self._ingress(data, port, InstanceType.NORMAL, None, 0)
        passes = 0
        while self._again:
            again = self._again.pop(0)
            passes += 1
            if passes > MAX_PASSES:
                self.drops += ["resubmitted or recirculated too often"] * (1 + len(self._again))
                break
            self._ingress(again.data, again.port, again.type, again.kept, again.fields)

    # Blocks -----------------------------------------------------------------------------------------------------------

    def _packet(self, length: int) -> Packet:
        now = self.now_us()
        return Packet(
            self.program,
            self.state,
            self.trace,
            self.dice,
            length,
            self.steps,
            now_us=now,
            on_digest=self.on_digest,
            on_log=self.on_log,
        )

    def _run(self, block: str, packet: Packet, *arguments: Struct | PacketIn | BitWriter) -> None:
        """A block of the pipeline; `exit` ends it."""
        instance = self.program.pipeline[block]
        variables: Variables = dict(zip(instance.unit.params, arguments, strict=True))
        with contextlib.suppress(ExitSignal):
            try:
                Machine(packet).run_unit(instance, variables)
            except RecursionError:
                raise too_deep(instance.unit.loc) from None

    def _fresh(self, packet: Packet, port: int, type_: InstanceType) -> Blocks:
        types = [param.type for param in self.program.pipeline["ig"].unit.params]
        values = [default_value(t) for t in types]
        blocks = Blocks(*(v for v in values if isinstance(v, Struct)))
        blocks.standard.fields["ingress_port"] = port
        blocks.standard.fields["packet_length"] = packet.length
        blocks.standard.fields["instance_type"] = int(type_)
        blocks.standard.fields["ingress_global_timestamp"] = packet.now_us
        return blocks

    def _parse(self, packet: Packet, data: bytes, blocks: Blocks) -> None:
        """A rejected packet goes on to ingress, too, with the error in its metadata."""
        reader = PacketIn(data)
        error = "NoError"
        try:
            self._run("p", packet, reader, blocks.headers, blocks.metadata, blocks.standard)
        except RejectSignal as rejected:
            error = rejected.error
            self.trace.line(f"parser rejects: {error}")
        blocks.standard.fields["parser_error"] = self.program.errors.index(error)
        packet.payload = reader.rest

    def _ingress(self, data: bytes, port: int, type_: InstanceType, kept: Struct | None, fields: int) -> None:
        packet = self._packet(len(data))
        self.trace.line(f"--- {type_.name.lower()} packet of {len(data)} bytes, port {port}")
        blocks = self._fresh(packet, port, type_)
        if kept is not None:
            keep_fields(fields, kept, blocks.metadata)
        self._parse(packet, data, blocks)
        self._run("vr", packet, blocks.headers, blocks.metadata)
        blocks.standard.fields["checksum_error"] = int(packet.checksum_error)
        self._run("ig", packet, blocks.headers, blocks.metadata, blocks.standard)

        asked = packet.requests
        packet.requests = Requests(truncate=asked.truncate)
        if asked.clone is not None:
            self._clone_ingress(data, port, blocks, asked.clone)
        if asked.resubmit is not None:
            self._start_over(data, blocks, asked.resubmit, InstanceType.RESUBMITTED)
            return
        standard = blocks.standard.fields
        group, spec = standard["mcast_grp"], standard["egress_spec"]
        assert isinstance(group, int)
        assert isinstance(spec, int)
        if group != 0:
            standard["instance_type"] = int(InstanceType.REPLICATION)
            replicas = self.replication.groups.get(group, [])
            if not replicas:
                self._drop("empty multicast group")
            packet.requests.truncate = None  # BMv2 copies whole frames
            self._replicate(packet, replicas, blocks)
        elif spec == DROP_PORT:
            self._drop("dropped by the program")
        else:
            standard["instance_type"] = int(InstanceType.NORMAL)
            self._egress(packet, blocks, spec)

    def _egress(self, packet: Packet, blocks: Blocks, port: int) -> None:
        self.trace.line(f"--- egress by port {port}")
        standard = blocks.standard.fields
        standard["egress_port"] = port
        standard["egress_spec"] = 0
        standard["packet_length"] = packet.length
        standard["egress_global_timestamp"] = packet.now_us
        self._run("eg", packet, blocks.headers, blocks.metadata, blocks.standard)

        asked = packet.requests
        packet.requests = Requests(truncate=asked.truncate)
        clone = (replace(packet, requests=Requests()), blocks.copy()) if asked.clone is not None else None
        self._send(packet, blocks, port, asked)
        if clone is not None and asked.clone is not None:
            self._clone_egress(*clone, asked.clone)  # the original leaves first: BMv2 queues the clone

    def _send(self, packet: Packet, blocks: Blocks, port: int, asked: Requests) -> None:
        """What follows egress."""
        if blocks.standard.fields["egress_spec"] == DROP_PORT:
            self._drop("dropped by the program")
            return
        self._run("ck", packet, blocks.headers, blocks.metadata)
        out = BitWriter()
        self._run("dep", packet, out, blocks.headers)
        frame = out.to_bytes() + packet.payload
        if asked.recirculate is not None:  # BMv2 starts over with a copy of the whole frame
            self._start_over(frame, blocks, asked.recirculate, InstanceType.RECIRCULATED)
            return
        if asked.truncate is not None:
            frame = frame[: asked.truncate]
        self.trace.line(f"--- out by port {port}: {frame.hex()}")
        self._out.append((port, frame))

    # Copies -----------------------------------------------------------------------------------------------------------

    def _drop(self, why: str) -> None:
        self.trace.line(f"--- {why}")
        self.drops.append(why)

    def _start_over(self, data: bytes, blocks: Blocks, fields: int, type_: InstanceType) -> None:
        kept = copy_of(blocks.metadata)
        assert isinstance(kept, Struct)
        self._again.append(Again(data, kept, fields, 0, type_))

    def _replicate(self, packet: Packet, replicas: list[tuple[int, int]], blocks: Blocks) -> None:
        for port, instance in replicas:
            copy = blocks.copy()
            copy.standard.fields["egress_rid"] = instance
            self._egress(replace(packet, requests=replace(packet.requests)), copy, port)

    def _clone_ingress(self, data: bytes, port: int, blocks: Blocks, asked: tuple[int, int]) -> None:
        """The packet as it came in, parsed again."""
        if asked[0] not in self.replication.sessions:
            return
        copy = self._packet(len(data))
        cloned = self._fresh(copy, port, InstanceType.NORMAL)
        self._parse(copy, data, cloned)
        copy.requests = Requests()
        self._finish_clone(copy, cloned, blocks.metadata, asked, InstanceType.INGRESS_CLONE)

    def _clone_egress(self, copy: Packet, cloned: Blocks, asked: tuple[int, int]) -> None:
        """The packet as it was when egress ended."""
        if asked[0] not in self.replication.sessions:
            return
        self._clone_depth += 1
        self._clones += 1
        if self._clone_depth > MAX_PASSES or self._clones > MAX_EGRESS_CLONES:
            self._drop("resubmitted or recirculated too often")
        else:
            original = copy_of(cloned.metadata)
            assert isinstance(original, Struct)
            self._finish_clone(copy, cloned, original, asked, InstanceType.EGRESS_CLONE)
        self._clone_depth -= 1

    def _finish_clone(
        self, copy: Packet, cloned: Blocks, original: Struct, asked: tuple[int, int], type_: InstanceType
    ) -> None:
        session, fields = asked
        overwrite(cloned.metadata, default_value(cloned.metadata.type))
        overwrite(cloned.standard, default_value(cloned.standard.type))
        keep_fields(fields, original, cloned.metadata)
        cloned.standard.fields["instance_type"] = int(type_)
        replicas, length = self.replication.sessions[session]
        if length:
            copy.requests.truncate = length
        self._replicate(copy, replicas, cloned)


def keep_fields(number: int, source: Struct, target: Struct) -> None:
    """Copies the fields with `@field_list(number)`."""
    for path in _listed(source.type, number):
        owner, receiver = source, target
        for name in path[:-1]:
            inner, other = owner.fields[name], receiver.fields[name]
            assert isinstance(inner, Struct)
            assert isinstance(other, Struct)
            owner, receiver = inner, other
        receiver.fields[path[-1]] = copy_of(owner.fields[path[-1]])


def _listed(t: object, number: int, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    assert isinstance(t, StructType)
    for f in t.fields:
        lists = [a.values for a in f.annotations if a.name == "field_list"]
        if lists:
            if any(number in values for values in lists):
                yield (*prefix, f.name)
        elif isinstance(f.type, StructType):
            yield from _listed(f.type, number, (*prefix, f.name))
