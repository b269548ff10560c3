"""What role.config allows the clients of a role."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from raw_client import Names, RawClient, UpdatesFailedError, update
from server_programs import Program

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2
from catchment.wire.generated.role_config_pb2 import P4RoleConfig

ROUTE = {1: ("lpm", 0x0A000000, 8)}
PERMISSION_DENIED = grpc.StatusCode.PERMISSION_DENIED


def bid(client: RawClient, role: str, config: P4RoleConfig | None, number: int = 1) -> int:
    """Bids for a role with a config; the status code of the answer."""
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = client.device_id
    request.arbitration.election_id.low = number
    request.arbitration.role.name = role
    if config is not None:
        request.arbitration.role.config.Pack(config)
    client.election_id = (0, number)
    client.send(request)
    return client.receive().arbitration.status.code


def write(client: RawClient, role: str, kind: str, *entities: p4runtime_pb2.Entity) -> list[int]:
    """The code of each update of a batch; 0 where it was done."""
    try:
        client.write(*[update(kind, entity) for entity in entities], role=role)
    except UpdatesFailedError as failed:
        return [code for code, _ in failed.errors]
    return [0] * len(entities)


@pytest.fixture
def other(switch: SwitchProcess) -> Iterator[RawClient]:
    with RawClient(switch.address) as client:
        yield client


@pytest.fixture
def named(switch: SwitchProcess) -> Iterator[RawClient]:
    with RawClient(switch.address) as client:
        yield client


def register(names: Names, index: int) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entity.register_entry.register_id = names.register_id(names.info.registers[0].preamble.name)
    entity.register_entry.index.index = index
    entity.register_entry.data.bitstring = b"\x01"
    return entity


def test_a_role_writes_the_objects_of_its_config_only(named: RawClient, client: RawClient, names: Names) -> None:
    route = names.entry("lpm_t", ROUTE, ("set_lpm", [5]))
    assert bid(named, "routes", P4RoleConfig(shared_p4_ids=[names.table_id("lpm_t")])) == 0
    assert write(named, "routes", "INSERT", route) == [0]
    assert write(named, "routes", "MODIFY", register(names, 0), route) == [PERMISSION_DENIED.value[0], 0]
    group = p4runtime_pb2.Entity()
    group.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 1
    assert write(named, "routes", "INSERT", group) == [PERMISSION_DENIED.value[0]]
    client.modify(register(names, 0), route)  # the default role may all
    request = named.write_request(update("MODIFY", route), update("MODIFY", register(names, 1)), role="routes")
    request.atomicity = p4runtime_pb2.WriteRequest.ROLLBACK_ON_ERROR
    with pytest.raises(UpdatesFailedError) as caught:
        named.send_write(request)
    assert [code for code, _ in caught.value.errors] == [grpc.StatusCode.ABORTED.value[0], PERMISSION_DENIED.value[0]]


def test_only_a_role_that_is_allowed_to_replaces_the_pipeline(named: RawClient, kinds: Program, names: Names) -> None:
    def replace() -> grpc.StatusCode | None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, role="loader", config=kinds.config())
        request.action = p4runtime_pb2.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        request.election_id.high, request.election_id.low = named.election_id or (0, 0)
        try:
            named.stub.SetForwardingPipelineConfig(request, timeout=60)
        except grpc.RpcError as error:
            return error.code()  # type: ignore[no-any-return]
        return None

    assert bid(named, "loader", None) == 0
    assert write(named, "loader", "INSERT", names.entry("lpm_t", ROUTE, ("set_lpm", [5]))) == [0]
    assert replace() == PERMISSION_DENIED
    assert bid(named, "loader", P4RoleConfig(shared_p4_ids=[names.table_id("lpm_t")])) == 0
    assert replace() == PERMISSION_DENIED
    assert bid(named, "loader", P4RoleConfig(can_push_pipeline=True)) == 0
    assert replace() is None


def test_what_a_role_has_for_itself_no_other_role_writes(
    named: RawClient, other: RawClient, client: RawClient, names: Names
) -> None:
    route, table = names.entry("lpm_t", ROUTE, ("set_lpm", [5])), names.table_id("lpm_t")
    assert bid(other, "free", None) == 0
    assert bid(named, "routes", P4RoleConfig(exclusive_p4_ids=[table])) == 0
    assert write(other, "free", "INSERT", route) == [PERMISSION_DENIED.value[0]]
    assert write(named, "routes", "INSERT", route) == [0]
    client.delete(route)
    named.close()
    assert other.arbitrate((0, 2), role="free") == 0
    codes = write(other, "free", "INSERT", route)
    while codes != [0]:  # until the switch has noticed that the owner is gone
        codes = write(other, "free", "INSERT", route)


def test_configs_that_contradict_each_other_or_say_nothing_are_refused(named: RawClient, names: Names) -> None:
    table = names.table_id("lpm_t")
    assert bid(named, "routes", P4RoleConfig(exclusive_p4_ids=[table])) == 0
    for role, config, words in (
        ("second", P4RoleConfig(shared_p4_ids=[table]), "exclusive"),
        ("", P4RoleConfig(shared_p4_ids=[table]), "default role"),
        ("second", P4RoleConfig(packet_in_filter=P4RoleConfig.PacketFilter(metadata_id=1)), "packet_in_filter"),
    ):
        with RawClient(named.address) as late, pytest.raises(grpc.RpcError) as caught:
            bid(late, role, config)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert words in caught.value.details()


def test_all_clients_of_a_role_hear_its_config(named: RawClient, other: RawClient) -> None:
    """That of the last primary."""
    for number in (1, 2):
        config = P4RoleConfig(can_push_pipeline=True, shared_p4_ids=[number])
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = named.device_id
        request.arbitration.election_id.low = number
        request.arbitration.role.name = "routes"
        request.arbitration.role.config.Pack(config)
        named.send(request)
        assert named.receive().arbitration.role == request.arbitration.role
        if number == 1:
            other.ask_arbitration(None, role="routes")
        assert other.receive().arbitration.role == request.arbitration.role
