"""A P4Runtime client on the bare gRPC stubs: every message of a test is the test's own."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator

import grpc
from google.rpc import status_pb2

from catchment.wire.generated import p4info_pb2, p4runtime_pb2, p4runtime_pb2_grpc

TIMEOUT = 60.0


class UpdatesFailedError(Exception):
    """A batch was refused in part: `errors` has one (code, message) per update."""

    def __init__(self, message: str, errors: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.errors = errors


class RawClient:
    """One channel with one stream; `with RawClient(address) as client`."""

    def __init__(self, address: str, *, device_id: int = 1, credentials: grpc.ChannelCredentials | None = None) -> None:
        self.address = address
        self.device_id = device_id
        self.election_id: tuple[int, int] | None = None
        options = [("grpc.max_receive_message_length", -1)]
        self.channel = (
            grpc.insecure_channel(address, options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self._requests: queue.Queue[p4runtime_pb2.StreamMessageRequest | None] = queue.Queue()
        self._responses: queue.Queue[p4runtime_pb2.StreamMessageResponse | grpc.RpcError] = queue.Queue()
        self._stream = self.stub.StreamChannel(iter(self._requests.get, None))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for response in self._stream:
                self._responses.put(response)
        except grpc.RpcError as error:
            self._responses.put(error)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.cancel()
        self._requests.put(None)
        self.channel.close()

    def send(self, request: p4runtime_pb2.StreamMessageRequest) -> None:
        self._requests.put(request)

    def receive(self) -> p4runtime_pb2.StreamMessageResponse:
        """The next stream message; raises the error that ended the stream."""
        response = self._responses.get(timeout=TIMEOUT)
        if isinstance(response, grpc.RpcError):
            raise response
        return response

    def has_message(self) -> bool:
        return not self._responses.empty()

    def ask_arbitration(
        self, election_id: tuple[int, int] | None, *, device_id: int | None = None, role: str = ""
    ) -> None:
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id if device_id is None else device_id
        if election_id is not None:
            request.arbitration.election_id.high, request.arbitration.election_id.low = election_id
        if role:
            request.arbitration.role.name = role
        self.send(request)

    def arbitrate(self, election_id: tuple[int, int] | None = (0, 1), role: str = "") -> int:
        """Bids and returns the status code of the answer."""
        self.ask_arbitration(election_id, role=role)
        self.election_id = election_id
        return self.receive().arbitration.status.code

    def write_request(self, *updates: p4runtime_pb2.Update, role: str = "") -> p4runtime_pb2.WriteRequest:
        request = p4runtime_pb2.WriteRequest(device_id=self.device_id, role=role, updates=updates)
        if self.election_id is not None:
            request.election_id.high, request.election_id.low = self.election_id
        return request

    def write(self, *updates: p4runtime_pb2.Update, role: str = "") -> None:
        """Writes the batch; raises UpdatesFailedError with the error of each update."""
        self.send_write(self.write_request(*updates, role=role))

    def send_write(self, request: p4runtime_pb2.WriteRequest) -> None:
        try:
            self.stub.Write(request, timeout=60)
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNKNOWN:
                raise
            raise UpdatesFailedError(error.details(), list(batch_errors(error))) from None

    def try_write(self, request: p4runtime_pb2.WriteRequest) -> None:
        """Writes; a refusal by the switch is fine, no answer is not."""
        with answered():
            self.stub.Write(request, timeout=60)

    def try_read(self, entities: list[p4runtime_pb2.Entity]) -> None:
        """Reads; a refusal by the switch is fine, no answer is not."""
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)
        with answered():
            list(self.stub.Read(request, timeout=60))

    def insert(self, *entities: p4runtime_pb2.Entity) -> None:
        self.write(*[update("INSERT", entity) for entity in entities])

    def modify(self, *entities: p4runtime_pb2.Entity) -> None:
        self.write(*[update("MODIFY", entity) for entity in entities])

    def delete(self, *entities: p4runtime_pb2.Entity) -> None:
        self.write(*[update("DELETE", entity) for entity in entities])

    def read(self, *entities: p4runtime_pb2.Entity) -> list[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=entities)
        try:
            return [entity for response in self.stub.Read(request, timeout=60) for entity in response.entities]
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.UNKNOWN:
                raise
            raise UpdatesFailedError(error.details(), list(batch_errors(error))) from None

    def set_pipeline(self, action: str, config: p4runtime_pb2.ForwardingPipelineConfig | None) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.Action.Value(action)
        if self.election_id is not None:
            request.election_id.high, request.election_id.low = self.election_id
        if config is not None:
            request.config.CopyFrom(config)
        self.stub.SetForwardingPipelineConfig(request, timeout=60)

    def get_pipeline(self, response_type: str = "ALL") -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self.device_id)
        request.response_type = p4runtime_pb2.GetForwardingPipelineConfigRequest.ResponseType.Value(response_type)
        return self.stub.GetForwardingPipelineConfig(request, timeout=60)


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Lets refusals pass; raises when the switch is gone or silent."""
    try:
        yield
    except grpc.RpcError as error:
        # gRPC itself answers bytes that are no message with INTERNAL and no text.
        ours = error.code() == grpc.StatusCode.INTERNAL and error.details()
        if ours or error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
            raise


def batch_errors(error: grpc.RpcError) -> Iterator[tuple[int, str]]:
    """The (code, message) of every update, from the binary status details."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            for packed in status_pb2.Status.FromString(value).details:
                one = p4runtime_pb2.Error()
                assert packed.Unpack(one)
                yield one.canonical_code, one.message


def update(kind: str, entity: p4runtime_pb2.Entity) -> p4runtime_pb2.Update:
    return p4runtime_pb2.Update(type=p4runtime_pb2.Update.Type.Value(kind), entity=entity)


class Names:
    """Builds entities of a P4Info from names; values are ints or byte strings, sent as given."""

    def __init__(self, info: p4info_pb2.P4Info) -> None:
        self.info = info

    def _find(self, objects: object, name: str) -> object:
        for one in objects:  # type: ignore[attr-defined]
            if name in (one.preamble.alias, one.preamble.name):
                return one
        raise KeyError(name)

    def table_id(self, name: str) -> int:
        return self._find(self.info.tables, name).preamble.id  # type: ignore[attr-defined]

    def action_id(self, name: str) -> int:
        return self._find(self.info.actions, name).preamble.id  # type: ignore[attr-defined]

    def register_id(self, name: str) -> int:
        return self._find(self.info.registers, name).preamble.id  # type: ignore[attr-defined]

    def counter_id(self, name: str) -> int:
        return self._find(self.info.counters, name).preamble.id  # type: ignore[attr-defined]

    def profile_id(self, name: str) -> int:
        return self._find(self.info.action_profiles, name).preamble.id  # type: ignore[attr-defined]

    def meter_id(self, name: str) -> int:
        return self._find(self.info.meters, name).preamble.id  # type: ignore[attr-defined]

    def digest_id(self, name: str) -> int:
        return self._find(self.info.digests, name).preamble.id  # type: ignore[attr-defined]

    def value_set_id(self, name: str) -> int:
        return self._find(self.info.value_sets, name).preamble.id  # type: ignore[attr-defined]

    def entry(
        self,
        table: str,
        match: dict[int, object] | None = None,
        action: tuple[str, list[object]] | None = None,
        *,
        priority: int = 0,
        default: bool = False,
    ) -> p4runtime_pb2.Entity:
        """`match`: field id -> value, or a tuple ("lpm", value, length) / ("ternary", value, mask) / ..."""
        entity = p4runtime_pb2.Entity()
        result = entity.table_entry
        result.table_id = self.table_id(table)
        result.priority = priority
        result.is_default_action = default
        for field_id, value in (match or {}).items():
            field = result.match.add(field_id=field_id)
            kind, *parts = value if isinstance(value, tuple) else ("exact", value)
            if kind == "lpm":
                field.lpm.value, field.lpm.prefix_len = as_bytes(parts[0]), parts[1]
            elif kind == "ternary":
                field.ternary.value, field.ternary.mask = as_bytes(parts[0]), as_bytes(parts[1])
            elif kind == "range":
                field.range.low, field.range.high = as_bytes(parts[0]), as_bytes(parts[1])
            elif kind == "optional":
                field.optional.value = as_bytes(parts[0])
            else:
                field.exact.value = as_bytes(parts[0])
        if action is not None:
            name, arguments = action
            result.action.action.action_id = self.action_id(name)
            for number, argument in enumerate(arguments, 1):
                result.action.action.params.add(param_id=number, value=as_bytes(argument))
        return entity


def as_bytes(value: object) -> bytes:
    """An int as its shortest byte string; bytes as they are."""
    if isinstance(value, bytes):
        return value
    assert isinstance(value, int)
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
