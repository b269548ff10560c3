"""What a client may name, and types that it may declare: no more than the switch has room and time for."""

from __future__ import annotations

from collections.abc import Callable

import grpc
import pytest
from raw_client import RawClient
from server_programs import Program

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4info_pb2, p4runtime_pb2, p4types_pb2
from catchment.wire.generated.role_config_pb2 import P4RoleConfig

Change = Callable[[p4info_pb2.P4Info], object]
REGISTER = "cells"
PATIENCE = 60.0


def spec(**given: dict[str, object]) -> p4types_pb2.P4DataTypeSpec:
    return p4types_pb2.P4DataTypeSpec(**given)


def register_type(info: p4info_pb2.P4Info) -> p4types_pb2.P4DataTypeSpec:
    (found,) = [register for register in info.registers if register.preamble.alias == REGISTER]
    return found.type_spec


def struct_in_itself(info: p4info_pb2.P4Info) -> None:
    member = info.type_info.structs["S"].members.add(name="inner")
    member.type_spec.CopyFrom(spec(tuple={"members": [spec(struct={"name": "S"})]}))
    register_type(info).CopyFrom(spec(struct={"name": "S"}))


def types_in_a_circle(info: p4info_pb2.P4Info) -> None:
    for name, of in (("A", "B"), ("B", "A")):
        info.type_info.new_types[name].original_type.CopyFrom(spec(new_type={"name": of}))
    register_type(info).CopyFrom(spec(new_type={"name": "A"}))


def twice_as_much_at_each_level(info: p4info_pb2.P4Info) -> None:
    for level in range(40):
        for name in ("left", "right"):
            member = info.type_info.structs[f"S{level}"].members.add(name=name)
            member.type_spec.CopyFrom(spec(struct={"name": f"S{level + 1}"}))
    info.type_info.structs["S40"].SetInParent()
    register_type(info).CopyFrom(spec(struct={"name": "S0"}))


def a_long_chain(info: p4info_pb2.P4Info) -> None:
    for level in range(1000):
        info.type_info.new_types[f"T{level}"].original_type.CopyFrom(spec(new_type={"name": f"T{level + 1}"}))
    info.type_info.new_types["T1000"].original_type.CopyFrom(spec(bitstring={"bit": {"bitwidth": 32}}))


def wider(width: int) -> Change:
    return lambda info: register_type(info).CopyFrom(spec(bitstring={"bit": {"bitwidth": width}}))


def pair_of(width: int) -> Change:
    half = spec(bitstring={"bit": {"bitwidth": width}})
    return lambda info: register_type(info).CopyFrom(spec(tuple={"members": [half, half]}))


def much_of_nothing(info: p4info_pb2.P4Info) -> None:
    """A value that is as wide as the register, and has thousands of members without a bit."""
    info.type_info.structs["Nothing"].SetInParent()
    members = [spec(struct={"name": "Nothing"})] * 4096
    register_type(info).CopyFrom(spec(tuple={"members": [*members, spec(bitstring={"bit": {"bitwidth": 32}})]}))


def too_wide(info: p4info_pb2.P4Info) -> None:
    member = info.type_info.structs["S"].members.add(name="wide")
    member.type_spec.CopyFrom(spec(bitstring={"int": {"bitwidth": 2**31 - 1}}))


def of_a_type_that_is_not_there(**given: dict[str, object]) -> Change:
    return lambda info: register_type(info).CopyFrom(spec(**given))


def union_of_a_header_that_is_not_there(info: p4info_pb2.P4Info) -> None:
    info.type_info.header_unions["U"].members.add(name="gone", header={"name": "gone"})


NOT_THERE: list[dict[str, dict[str, object]]] = [
    {"struct": {"name": "gone"}},
    {"header": {"name": "gone"}},
    {"header_union": {"name": "gone"}},
    {"header_stack": {"header": {"name": "gone"}, "size": 2}},
    {"new_type": {"name": "gone"}},
    {"serializable_enum": {"name": "gone"}},
]


@pytest.mark.parametrize("action", ["VERIFY", "VERIFY_AND_COMMIT"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (struct_in_itself, "struct 'S' contains itself"),
        (types_in_a_circle, "contains itself"),
        (twice_as_much_at_each_level, "has more than 4096 parts"),
        (much_of_nothing, "register 'KindsIngress.cells' has more than 4096 parts"),
        (a_long_chain, "lie in more than 64 others"),
        (too_wide, "struct 'S' has 2147483647 bits"),
        *((wider(width), "has cells of another width") for width in (0, 8, 64)),
        *((wider(width), f"has {width} bits") for width in (-1, 2**31 - 1)),
        *((pair_of(width), "has cells of another width") for width in (16, 32)),
        *((of_a_type_that_is_not_there(**given), "type 'gone' of register") for given in NOT_THERE),
        (union_of_a_header_that_is_not_there, "type 'gone' of header union 'U' is not in type_info"),
    ],
)
def test_a_pipeline_whose_types_cannot_be_is_refused(
    client: RawClient, kinds: Program, change: Change, says: str, action: str
) -> None:
    config = kinds.config()
    change(config.p4info)
    with pytest.raises(grpc.RpcError) as caught:
        client.set_pipeline(action, config)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert says in caught.value.details()
    assert client.read(p4runtime_pb2.Entity(register_entry={})) != []


def named(role: str) -> p4runtime_pb2.StreamMessageRequest:
    arbitration = p4runtime_pb2.MasterArbitrationUpdate(device_id=1, role={"name": role}, election_id={"low": 1})
    return p4runtime_pb2.StreamMessageRequest(arbitration=arbitration)


def answer(client: RawClient, *requests: p4runtime_pb2.StreamMessageRequest) -> p4runtime_pb2.StreamMessageResponse:
    return next(client.stub.StreamChannel(iter(requests), timeout=PATIENCE))


def test_roles_are_bounded_in_name_and_number(switch: SwitchProcess) -> None:
    with RawClient(switch.address) as client:
        with pytest.raises(grpc.RpcError) as caught:
            answer(client, named("x" * 257))
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        for number in range(1024):
            answer(client, named(f"role {number}"))
        with pytest.raises(grpc.RpcError) as caught:
            answer(client, named("one more"))
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        for known in ("role 7", ""):
            assert answer(client, named(known)).HasField("arbitration")


def test_the_config_of_a_role_is_bounded(switch: SwitchProcess) -> None:
    """It is kept as long as the role."""
    with RawClient(switch.address) as client:
        for ids, fits in ((60_000, True), (70_000, False)):
            request = named("routes")
            request.arbitration.role.config.Pack(P4RoleConfig(shared_p4_ids=[1] * ids))
            if fits:
                assert answer(client, request).arbitration.role.HasField("config")
                continue
            with pytest.raises(grpc.RpcError) as caught:
                answer(client, request)
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert "role.config has" in caught.value.details()


def test_an_answer_is_bounded_however_often_a_read_asks(client: RawClient) -> None:
    everything = p4runtime_pb2.Entity(register_entry={})
    one = sum(entity.ByteSize() for entity in client.read(everything))
    times = (64 << 20) // one + 1
    with pytest.raises(grpc.RpcError) as caught:
        client.read(*[everything] * times)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "64 MiB" in caught.value.details()
    assert len(client.read(*[everything] * 2)) == 2 * len(client.read(everything))
