"""A P4Runtime server in memory: keeps what is written, answers reads, and fails on request."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import code_pb2, status_pb2

from catchment.sim.lab.held_address import HeldAddress
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_DETAILS = "grpc-status-details-bin"


def entity_key(entity: Any) -> bytes:
    """What identifies an entity: everything but its value."""
    key = p4runtime_pb2.Entity()
    key.CopyFrom(entity)
    kind = key.WhichOneof("entity")
    if kind == "table_entry":
        key.table_entry.ClearField("action")
        key.table_entry.ClearField("counter_data")
        key.table_entry.ClearField("idle_timeout_ns")
        key.table_entry.ClearField("metadata")
        matches = sorted(key.table_entry.match, key=lambda m: m.field_id)
        key.table_entry.ClearField("match")
        key.table_entry.match.extend(matches)
    elif kind == "packet_replication_engine_entry":
        key.packet_replication_engine_entry.multicast_group_entry.ClearField("replicas")
    elif kind == "register_entry":
        key.register_entry.ClearField("data")
    return bytes(key.SerializeToString(deterministic=True))


@dataclass
class FakeSwitch(p4runtime_pb2_grpc.P4RuntimeServicer):  # type: ignore[misc]
    """State and behaviour of the server; tests change the fields.

    Attributes:
        refuse: entity key -> (code, message) that a write of it gets.
        refuse_new: (code, message) that every insert of a table entry gets.
        no_registers: answer UNIMPLEMENTED to register access, as BMv2 does.
        silent: never answer anything but the arbitration.
        no_arbitration: never answer the arbitration.
        stale_notice: send an older notice of arbitration before the answer.
        notices: stream messages that the primary gets after the arbitration.
        release: set it to wake requests up that hang because of `silent`.
    """

    device_id: int = 1
    p4info: Any = None
    config: bytes = b""
    cookie: int = 0
    entities: dict[bytes, Any] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    refuse: dict[bytes, tuple[int, str]] = field(default_factory=dict)
    refuse_new: tuple[int, str] | None = None
    no_registers: bool = False
    silent: bool = False
    no_arbitration: bool = False
    stale_notice: bool = False
    counters: dict[int, int] = field(default_factory=dict)
    direct: dict[bytes, int] = field(default_factory=dict)
    primary: tuple[int, int] = (0, 0)
    holder: queue.Queue[Any] | None = None
    notices: Iterable[Any] = ()
    release: threading.Event = field(default_factory=threading.Event)

    def StreamChannel(self, requests: Iterator[Any], context: Any) -> Iterator[Any]:  # noqa: N802
        events: queue.Queue[Any] = queue.Queue()

        def read() -> None:
            try:
                for request in requests:
                    events.put(request)
            except grpc.RpcError:
                pass
            events.put(None)

        threading.Thread(target=read, daemon=True).start()
        try:
            while (event := events.get()) is not None:
                if isinstance(event, p4runtime_pb2.StreamMessageResponse):
                    yield event
                elif not self.no_arbitration:
                    yield from self._arbitrate(event, events, context)
                    yield from self.notices
        finally:
            if self.holder is events:
                self.holder = None

    def _arbitrate(self, request: Any, events: queue.Queue[Any], context: Any) -> Iterator[Any]:
        asked = (request.arbitration.election_id.high, request.arbitration.election_id.low)
        if request.arbitration.device_id != self.device_id:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no device {request.arbitration.device_id}")
        code = code_pb2.ALREADY_EXISTS
        if asked == self.primary and self.holder not in (None, events):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"election id {asked} is in use")
        if asked >= self.primary:
            if self.stale_notice:
                yield self._notice(code_pb2.NOT_FOUND, (0, 0))
            loser, self.primary, self.holder, code = self.holder, asked, events, code_pb2.OK
            if loser not in (None, events):
                loser.put(self._notice(code_pb2.ALREADY_EXISTS, asked))
        yield self._notice(code, self.primary)

    def _notice(self, code: int, election_id: tuple[int, int]) -> Any:
        notice = p4runtime_pb2.StreamMessageResponse()
        notice.arbitration.device_id, notice.arbitration.status.code = self.device_id, code
        notice.arbitration.election_id.high, notice.arbitration.election_id.low = election_id
        return notice

    def _enter(self, name: str, context: Any) -> None:
        self.log.append(name)
        if self.silent:
            self.release.wait(120)
            context.abort(grpc.StatusCode.UNAVAILABLE, "woken up")

    def Capabilities(self, request: Any, context: Any) -> Any:  # noqa: N802
        return p4runtime_pb2.CapabilitiesResponse(p4runtime_api_version="1.4.1")

    def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._enter("pipeline", context)
        self.p4info, self.config = request.config.p4info, request.config.p4_device_config
        self.cookie = request.config.cookie.cookie
        # Like BMv2: the replication engine stays.
        self.entities = {
            k: e for k, e in self.entities.items() if e.WhichOneof("entity") == "packet_replication_engine_entry"
        }
        return p4runtime_pb2.SetForwardingPipelineConfigResponse()

    def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._enter("get pipeline", context)
        reply = p4runtime_pb2.GetForwardingPipelineConfigResponse()
        if self.p4info is not None:
            reply.config.p4info.CopyFrom(self.p4info)
            reply.config.cookie.cookie = self.cookie
        return reply

    def Write(self, request: Any, context: Any) -> Any:  # noqa: N802
        self._enter("write", context)
        if (request.election_id.high, request.election_id.low) != self.primary:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not primary")
        outcomes = [self._apply(update) for update in request.updates]
        if any(code for code, _ in outcomes):
            details = status_pb2.Status(code=code_pb2.UNKNOWN, message="some updates failed")
            for code, message in outcomes:
                error = p4runtime_pb2.Error(canonical_code=code, message=message)
                details.details.add().Pack(error)
            context.set_trailing_metadata(((_DETAILS, details.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, "some updates failed")
        return p4runtime_pb2.WriteResponse()

    def _apply(self, update: Any) -> tuple[int, str]:
        key = entity_key(update.entity)
        if key in self.refuse:
            return self.refuse[key]
        inserts = update.type == p4runtime_pb2.Update.INSERT and update.entity.HasField("table_entry")
        if inserts and self.refuse_new is not None:
            return self.refuse_new
        exists = key in self.entities
        entry = update.entity.table_entry
        if update.type == p4runtime_pb2.Update.INSERT and exists:
            return code_pb2.ALREADY_EXISTS, "entry exists"
        always = entry.is_default_action or update.entity.HasField("register_entry")
        if update.type == p4runtime_pb2.Update.MODIFY and not exists and not always:
            return code_pb2.NOT_FOUND, "no such entry"
        if update.type == p4runtime_pb2.Update.DELETE:
            if not exists:
                return code_pb2.NOT_FOUND, "no such entry"
            del self.entities[key]
        else:
            self.entities[key] = update.entity
        return code_pb2.OK, ""

    def Read(self, request: Any, context: Any) -> Iterator[Any]:  # noqa: N802
        self._enter("read", context)
        reply = p4runtime_pb2.ReadResponse()
        for query in request.entities:
            kind = query.WhichOneof("entity")
            if kind == "register_entry" and self.no_registers:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, "Register reads are not supported yet")
            if kind == "counter_entry":
                asked = query.counter_entry
                size = next(c.size for c in self.p4info.counters if c.preamble.id == asked.counter_id)
                cells = [asked.index.index] if asked.HasField("index") else range(size)
                for index, packets in sorted((i, self.counters[i]) for i in cells if i in self.counters):
                    cell = reply.entities.add().counter_entry
                    cell.counter_id = query.counter_entry.counter_id
                    cell.index.index, cell.data.packet_count = index, packets
                continue
            for key, entity in list(self.entities.items()):
                if kind == "direct_counter_entry":
                    if entity.table_entry.table_id == query.direct_counter_entry.table_entry.table_id:
                        out = reply.entities.add().direct_counter_entry
                        out.table_entry.CopyFrom(entity.table_entry)
                        out.table_entry.ClearField("action")
                        out.data.packet_count = self.direct.get(key, 0)
                elif entity.WhichOneof("entity") == kind and _selected(query, entity, kind):
                    reply.entities.add().CopyFrom(entity)
        yield reply


def _selected(query: Any, entity: Any, kind: str) -> bool:
    if kind == "table_entry":
        same = entity.table_entry.table_id == query.table_entry.table_id
        return bool(same and entity.table_entry.is_default_action == query.table_entry.is_default_action)
    if kind == "packet_replication_engine_entry":
        asked = query.packet_replication_engine_entry.WhichOneof("type")
        return bool(entity.packet_replication_engine_entry.WhichOneof("type") == asked)
    if kind == "register_entry":
        asked = query.register_entry
        same = entity.register_entry.register_id == asked.register_id
        return bool(same and (not asked.HasField("index") or asked.index == entity.register_entry.index))
    return True


class RunningFake:
    """The server on a loopback port; a context manager.

    The port stays its own until the end of the block, so that after `stop` another can be run at its `address`.
    """

    def __init__(self, switch: FakeSwitch, address: str = "") -> None:
        self.switch = switch
        self._held = HeldAddress()
        self.address = address or self._held.address
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
        p4runtime_pb2_grpc.add_P4RuntimeServicer_to_server(switch, self._server)
        self._server.add_insecure_port(self.address)

    def __enter__(self) -> RunningFake:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._held.close()

    def stop(self) -> None:
        """End the server at once."""
        self.switch.release.set()
        self._server.stop(None).wait()
