"""SetForwardingPipelineConfig in all its actions, GetForwardingPipelineConfig, Capabilities."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from raw_client import Names, RawClient
from server_programs import Program

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

Config = p4runtime_pb2.ForwardingPipelineConfig


@pytest.fixture
def bare(start: Callable[..., SwitchProcess]) -> RawClient:
    """The primary of a switch without a program."""
    client = RawClient(start().address)
    client.arbitrate((0, 1))
    return client


def refused(call: object, *arguments: object) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value


def one_entry(names: Names, value: int = 5) -> p4runtime_pb2.Entity:
    return names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [value]))


def all_entries() -> p4runtime_pb2.Entity:
    return p4runtime_pb2.Entity(table_entry=p4runtime_pb2.TableEntry())


def test_without_a_pipeline_reads_and_writes_say_so(bare: RawClient, names: Names) -> None:
    for call in (lambda: bare.insert(one_entry(names)), lambda: bare.read(all_entries())):
        error = refused(call)
        assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "SetForwardingPipelineConfig" in error.details()
    assert not bare.get_pipeline().HasField("config")


def test_commit_then_get_back(bare: RawClient, kinds: Program, names: Names) -> None:
    bare.set_pipeline("VERIFY_AND_COMMIT", kinds.config(cookie=0xDEADBEEF))
    bare.insert(one_entry(names))

    everything = bare.get_pipeline("ALL").config
    assert everything == kinds.config(cookie=0xDEADBEEF)
    assert bare.get_pipeline("COOKIE_ONLY").config == Config(cookie=everything.cookie)
    assert bare.get_pipeline("P4INFO_AND_COOKIE").config == Config(p4info=kinds.p4info, cookie=everything.cookie)
    assert bare.get_pipeline("DEVICE_CONFIG_AND_COOKIE").config == Config(
        p4_device_config=everything.p4_device_config, cookie=everything.cookie
    )


@pytest.mark.parametrize("loaded", [False, True])
def test_a_response_type_that_there_is_not_is_refused(bare: RawClient, kinds: Program, loaded: bool) -> None:
    if loaded:
        bare.set_pipeline("VERIFY_AND_COMMIT", kinds.config())
    request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=bare.device_id)
    for request.response_type in (4, -1):
        error = refused(lambda: bare.stub.GetForwardingPipelineConfig(request, timeout=60))
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert error.details() == (
            f"response_type: there is no type {request.response_type}; ask for ALL, COOKIE_ONLY, P4INFO_AND_COOKIE or "
            "DEVICE_CONFIG_AND_COOKIE"
        )


def test_no_cookie_is_told_from_cookie_zero(bare: RawClient, kinds: Program) -> None:
    bare.set_pipeline("VERIFY_AND_COMMIT", kinds.config())
    assert not bare.get_pipeline().config.HasField("cookie")
    bare.set_pipeline("VERIFY_AND_COMMIT", kinds.config(cookie=0))
    assert bare.get_pipeline().config.HasField("cookie")


def test_commit_clears_all_state(client: RawClient, kinds: Program, names: Names) -> None:
    group = p4runtime_pb2.Entity()
    group.packet_replication_engine_entry.multicast_group_entry.multicast_group_id = 3
    client.insert(one_entry(names), group)
    client.set_pipeline("VERIFY_AND_COMMIT", kinds.config())
    every_group = p4runtime_pb2.Entity()
    every_group.packet_replication_engine_entry.multicast_group_entry.SetInParent()
    assert [entity.table_entry.is_const for entity in client.read(all_entries())] == [True, True]
    assert client.read(every_group) == []


def test_verify_changes_nothing(client: RawClient, kinds: Program, names: Names) -> None:
    client.insert(one_entry(names))
    before = client.get_pipeline()
    client.set_pipeline("VERIFY", kinds.config(cookie=1))
    assert client.get_pipeline() == before
    assert len(client.read(one_entry(names))) == 1


def test_save_takes_writes_that_commit_puts_in_force(client: RawClient, kinds: Program, names: Names) -> None:
    client.insert(one_entry(names, 5))
    client.set_pipeline("VERIFY_AND_SAVE", kinds.config(cookie=2))
    assert client.get_pipeline().config.cookie.cookie == 2
    assert client.read(one_entry(names)) == []
    client.insert(one_entry(names, 6))
    client.modify(names.entry("keyless_t", action=("set_default", [9]), default=True))
    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = names.register_id("cells")
    cell.register_entry.index.index = 3
    cell.register_entry.data.bitstring = b"\x55"
    client.modify(cell)

    client.set_pipeline("COMMIT", None)
    assert client.get_pipeline().config.cookie.cookie == 2
    read = client.read(one_entry(names))
    assert [entity.table_entry.action.action.params[0].value for entity in read] == [b"\x06"]
    assert client.read(names.entry("keyless_t", default=True))[0].table_entry.action.action.params[0].value == b"\x09"
    assert client.read(cell) == [cell]


def test_commit_needs_a_saved_config_and_none_in_the_request(client: RawClient, kinds: Program) -> None:
    assert refused(client.set_pipeline, "COMMIT", None).code() == grpc.StatusCode.NOT_FOUND
    client.set_pipeline("VERIFY_AND_SAVE", kinds.config())
    assert refused(client.set_pipeline, "COMMIT", kinds.config()).code() == grpc.StatusCode.INVALID_ARGUMENT
    client.set_pipeline("COMMIT", None)
    assert refused(client.set_pipeline, "COMMIT", None).code() == grpc.StatusCode.NOT_FOUND


def test_reconcile_keeps_entries_groups_and_cells(client: RawClient, kinds: Program, names: Names) -> None:
    group = p4runtime_pb2.Entity()
    entry = group.packet_replication_engine_entry.multicast_group_entry
    entry.multicast_group_id = 3
    entry.replicas.add(egress_port=1, instance=2)
    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = names.register_id("wide_cells")
    cell.register_entry.index.index = 1
    cell.register_entry.data.bitstring = bytes(range(1, 17))
    client.insert(one_entry(names), group)
    client.modify(cell)
    before = client.read(all_entries())
    client.set_pipeline("RECONCILE_AND_COMMIT", kinds.config(cookie=8))
    assert client.get_pipeline().config.cookie.cookie == 8
    assert client.read(all_entries()) == before
    assert client.read(group) == [group]
    assert client.read(cell) == [cell]


@pytest.mark.parametrize("action", ["VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"])
def test_what_cannot_be_realized_is_refused_and_the_running_pipeline_stays(
    client: RawClient, kinds: Program, names: Names, action: str
) -> None:
    client.insert(one_entry(names))
    other_width = kinds.config()
    for table in other_width.p4info.tables:
        if table.preamble.alias == "lpm_t":
            table.match_fields[0].bitwidth = 31
    missing_action = kinds.config()
    del missing_action.p4info.actions[0]
    bigger_register = kinds.config()
    bigger_register.p4info.registers[0].size += 1
    not_a_program = kinds.config()
    not_a_program.p4_device_config = b"P4"
    unknown = kinds.config()
    unknown.p4_device_config += b"\0"
    for config, word in (
        (None, "config"),
        (other_width, "hdr.probe.address"),
        (missing_action, "action"),
        (bigger_register, "register"),
        (not_a_program, "p4_device_config"),
        (unknown, "copy the compiled program"),
    ):
        error = refused(client.set_pipeline, action, config)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert word in error.details()
    assert len(client.read(one_entry(names))) == 1


def test_an_unset_action_is_refused(client: RawClient, kinds: Program) -> None:
    assert refused(client.set_pipeline, "UNSPECIFIED", kinds.config()).code() == grpc.StatusCode.INVALID_ARGUMENT


def test_an_action_that_there_is_not_is_named(client: RawClient, kinds: Program) -> None:
    request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=1, config=kinds.config())
    request.election_id.low = 1
    request.action = 9  # type: ignore[assignment]  of a later edition of the protocol, say
    error = refused(client.stub.SetForwardingPipelineConfig, request)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "there is no action 9" in error.details()


def test_only_the_primary_sets_the_pipeline(client: RawClient, switch: SwitchProcess, kinds: Program) -> None:
    with RawClient(switch.address) as backup:
        backup.election_id = (0, 0)
        error = refused(backup.set_pipeline, "VERIFY", kinds.config())
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_program_is_named_by_its_hash(bare: RawClient, kinds: Program, names: Names) -> None:
    config = kinds.config()
    digest = hashlib.sha256(config.p4_device_config).hexdigest()
    config.p4_device_config = f"sha256:{digest}\n".encode()
    bare.set_pipeline("VERIFY_AND_COMMIT", config)
    bare.insert(one_entry(names))
    for wrong in (f"sha256:{digest[:-1]}", f"sha256:{digest.upper()}", f"md5:{digest}", ""):
        config.p4_device_config = wrong.encode()
        assert refused(bare.set_pipeline, "VERIFY", config).code() == grpc.StatusCode.INVALID_ARGUMENT


def test_bytes_from_a_client_are_never_run(start: Callable[..., SwitchProcess], kinds: Program, tmp_path: Path) -> None:
    """The same program is refused while it is not in the operator's folder, and taken once it is."""
    folder = tmp_path / "programs"
    folder.mkdir()
    with RawClient(start(program_dir=folder).address) as client:
        client.arbitrate()
        error = refused(client.set_pipeline, "VERIFY", kinds.config())
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert str(folder) in error.details()
        shutil.copy(kinds.shared_object, folder / "other_name.so")
        client.set_pipeline("VERIFY_AND_COMMIT", kinds.config())
        # A file that changes in place is looked at anew, and what runs is not disturbed.
        (folder / "other_name.so").write_bytes(b"\x7fELF nonsense")
        assert refused(client.set_pipeline, "VERIFY", kinds.config()).code() == grpc.StatusCode.INVALID_ARGUMENT
        assert len(client.read(all_entries())) == 2


def test_a_shared_object_that_is_no_program_is_refused(
    start: Callable[..., SwitchProcess], kinds: Program, tmp_path: Path
) -> None:
    nonsense = b"\x7fELF nonsense"
    (tmp_path / "nonsense.so").write_bytes(nonsense)
    with RawClient(start(program_dir=tmp_path).address) as client:
        client.arbitrate()
        config = kinds.config()
        config.p4_device_config = nonsense
        error = refused(client.set_pipeline, "VERIFY", config)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "cannot be loaded" in error.details()


def test_the_pipeline_survives_many_pushes(client: RawClient, kinds: Program, names: Names) -> None:
    config = kinds.config()
    for number in range(100):
        config.cookie.cookie = number
        client.set_pipeline("VERIFY_AND_COMMIT", config)
    client.insert(one_entry(names))
    assert client.get_pipeline("COOKIE_ONLY").config.cookie.cookie == 99


def test_capabilities(client: RawClient) -> None:
    answer = client.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest())
    assert answer.p4runtime_api_version.split(".")[0] == "1"
