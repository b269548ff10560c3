"""Fields that came with later editions of P4Runtime: each is refused by its place, and none is left undone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from raw_client import RawClient, UpdatesFailedError, update
from server_programs import Program

from catchment.wire.generated import p4info_pb2, p4runtime_pb2
from catchment.wire.generated.role_config_pb2 import P4RoleConfig

PATIENCE = 60.0
INVALID_ARGUMENT = 3
UNKNOWN_FIELD = b"\xc0\x3e\x01"  # number 1000, with the value 1
UNKNOWN_WORDS = "field number 1000 of "
GIVEN_BACK = {p4info_pb2.P4Info.DESCRIPTOR.full_name}

Path = tuple[FieldDescriptor, ...]


def ways(descriptor: Descriptor, path: Path = (), seen: frozenset[str] = frozenset()) -> Iterator[Path]:
    """The fields that lead to each message that one of this type may have in it, itself included."""
    if descriptor.full_name in seen or descriptor.full_name in GIVEN_BACK:
        return
    yield path
    for field in descriptor.fields:
        if field.message_type is not None:
            yield from ways(field.message_type, (*path, field), seen | {descriptor.full_name})


def grown(message: Message, path: Path) -> str:
    """Put a field that nobody knows at the end of the path; the words of its place."""
    at: Any = message
    names = []
    for field in path:
        inner = getattr(at, field.name)
        if field.is_repeated:
            inner.add()
            at = inner.add()
            names.append(f"{field.name}[1]")
        else:
            inner.SetInParent()
            at = inner
            names.append(field.name)
    at.MergeFromString(UNKNOWN_FIELD)
    return ".".join(names) + (": " if names else "") + UNKNOWN_WORDS + at.DESCRIPTOR.full_name


def test_an_update_with_a_field_that_is_not_known_says_where_it_is(client: RawClient) -> None:
    paths = list(ways(p4runtime_pb2.Update.DESCRIPTOR))
    assert len(paths) > 50
    for path in paths:
        wrong = p4runtime_pb2.Update()
        words = grown(wrong, path)
        with pytest.raises(UpdatesFailedError) as caught:
            client.write(wrong)
        ((code, message),) = caught.value.errors
        assert code == INVALID_ARGUMENT and message.startswith(words), words


def test_backups_of_a_replica_are_refused_and_the_rest_of_a_batch_is_done(client: RawClient) -> None:
    """P4Runtime 1.5 has `repeated BackupReplica backup_replicas = 4`, each with a port and an instance."""
    groups = [p4runtime_pb2.Entity() for _ in range(2)]
    for number, group in enumerate(groups, 1):
        entry = group.packet_replication_engine_entry.multicast_group_entry
        entry.multicast_group_id = number
        entry.replicas.add(egress_port=5, instance=1)
    backup = b"\x0a\x01\x06"
    groups[0].packet_replication_engine_entry.multicast_group_entry.replicas[0].MergeFromString(b"\x22\x03" + backup)
    with pytest.raises(UpdatesFailedError) as caught:
        client.insert(*groups)
    (refused, message), (done, _) = caught.value.errors
    assert (refused, done) == (INVALID_ARGUMENT, 0)
    assert "multicast_group_entry.replicas[0]: field number 4 of p4.v1.Replica" in message
    assert (
        client.read(p4runtime_pb2.Entity(packet_replication_engine_entry={"multicast_group_entry": {}})) == groups[1:]
    )


def test_a_read_with_a_field_that_is_not_known_reads_nothing_for_it(client: RawClient) -> None:
    wrong = p4runtime_pb2.Entity()
    words = grown(wrong, (wrong.DESCRIPTOR.fields_by_name["table_entry"],))
    with pytest.raises(UpdatesFailedError) as caught:
        client.read(wrong)
    ((code, message),) = caught.value.errors
    assert code == INVALID_ARGUMENT and message.startswith(words)


def refusal(ask: Any, request: Message) -> str:
    """The words with which a call is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        ask(request, timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    return str(caught.value.details())


def read_all(client: RawClient, request: Message, timeout: float) -> list[object]:
    return list(client.stub.Read(request, timeout=timeout))


def test_calls_with_a_field_that_is_not_known_are_refused(client: RawClient, program: Program) -> None:
    write = client.write_request(update("INSERT", p4runtime_pb2.Entity()))
    grown(write, ())
    assert refusal(client.stub.Write, write).startswith(UNKNOWN_WORDS)
    read = p4runtime_pb2.ReadRequest(device_id=1)
    grown(read, ())
    assert refusal(partial(read_all, client), read).startswith(UNKNOWN_WORDS)
    get = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=1)
    grown(get, ())
    assert refusal(client.stub.GetForwardingPipelineConfig, get).startswith(UNKNOWN_WORDS)
    for path in ways(p4runtime_pb2.SetForwardingPipelineConfigRequest.DESCRIPTOR):
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, config=program.config())
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.election_id.low = 1
        words = grown(request, path)
        assert refusal(client.stub.SetForwardingPipelineConfig, request).startswith(words)


def test_a_p4info_that_says_more_is_taken_and_given_back(client: RawClient, program: Program) -> None:
    config = program.config()
    config.p4info.pkg_info.MergeFromString(UNKNOWN_FIELD)
    client.set_pipeline("VERIFY_AND_COMMIT", config)
    assert client.get_pipeline().config.p4info == config.p4info


def test_stream_messages_with_a_field_that_is_not_known_are_refused(client: RawClient) -> None:
    for kind in ("packet", "digest_ack"):
        field = p4runtime_pb2.StreamMessageRequest.DESCRIPTOR.fields_by_name[kind]
        for path in ways(field.message_type, (field,)):
            request = p4runtime_pb2.StreamMessageRequest()
            words = grown(request, path).removeprefix(kind).lstrip(".: ")
            client.send(request)
            error = client.receive().error
            assert error.canonical_code == INVALID_ARGUMENT and error.message.startswith(words)


def first_answer(client: RawClient, request: Message, timeout: float) -> object:
    return next(client.stub.StreamChannel(iter([request]), timeout=timeout))


def test_a_bid_with_a_field_that_is_not_known_ends_its_stream(client: RawClient) -> None:
    field = p4runtime_pb2.StreamMessageRequest.DESCRIPTOR.fields_by_name["arbitration"]
    for path in ways(field.message_type, (field,)):
        request = p4runtime_pb2.StreamMessageRequest()
        words = grown(request, path).removeprefix("arbitration").lstrip(".: ")
        assert refusal(partial(first_answer, client), request).startswith(words)
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = 1
    request.arbitration.role.name = "routes"
    config = P4RoleConfig()
    words = grown(config, ())
    request.arbitration.role.config.Pack(config)
    assert refusal(partial(first_answer, client), request).startswith("role.config: " + words)
