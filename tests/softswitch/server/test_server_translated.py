"""Translated types (`@p4runtime_translation`) in controller headers, digests and registers."""

from __future__ import annotations

import os

import grpc
import pytest
from frame_ports import PROBE_TYPE, FramePorts
from raw_client import Names, RawClient, UpdatesFailedError
from server_programs import Program, compiled

from catchment.wire.generated import p4runtime_pb2

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")

OUT_OF_RANGE = 11
FRAME = bytes.fromhex("02000000000a") + bytes.fromhex("02000000000b") + PROBE_TYPE + bytes(46)


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """translated.p4, compiled."""
    return compiled("translated", tmp_path_factory.mktemp("translated"))


@pytest.fixture
def program(translated: Program) -> Program:
    return translated


def packet_out(port: bytes) -> p4runtime_pb2.StreamMessageRequest:
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = FRAME
    request.packet.metadata.add(metadata_id=1, value=port)
    return request


def test_packet_ins_have_the_port_they_came_by(wired: RawClient, ports: FramePorts) -> None:
    ports.send(3, FRAME)
    packet = wired.receive().packet
    assert packet.payload == FRAME
    assert [one.value for one in packet.metadata] == [b"\x03", b"\x05"]


@pytest.mark.parametrize("port", [b"\x02", b"\0\0\0\x02"])
def test_packet_outs_leave_by_the_port_they_name(wired: RawClient, ports: FramePorts, port: bytes) -> None:
    wired.send(packet_out(port))
    assert ports.receive(2) == FRAME


def test_a_port_that_the_program_has_no_bits_for_is_refused(wired: RawClient) -> None:
    wired.send(packet_out(b"\x02\x01"))
    error = wired.receive().error
    assert error.canonical_code == OUT_OF_RANGE
    assert "egress_port" in error.message


def test_digests_have_translated_members(wired: RawClient, ports: FramePorts, names: Names) -> None:
    config = p4runtime_pb2.Entity()
    config.digest_entry.digest_id = names.digest_id("learned_t")
    config.digest_entry.config.max_list_size = 1
    wired.insert(config)
    ports.send(4, FRAME)
    messages = [wired.receive(), wired.receive()]
    (learned,) = [one.digest for one in messages if one.HasField("digest")]
    (data,) = learned.data
    assert [member.bitstring for member in data.struct.members] == [FRAME[6:12], b"\x04"]


def test_registers_of_a_translated_type(wired: RawClient, ports: FramePorts, names: Names) -> None:
    ports.send(4, FRAME)
    wired.receive()
    cells = p4runtime_pb2.Entity()
    cells.register_entry.SetInParent()  # every register
    assert [cell.register_entry.data.bitstring for cell in wired.read(cells)] == [b"\x04", b"\0", b"\0", b"\0"]

    cell = p4runtime_pb2.Entity()
    cell.register_entry.register_id = names.register_id("last_port")
    cell.register_entry.index.index = 2
    cell.register_entry.data.bitstring = b"\x01\xff"
    wired.modify(cell)
    assert wired.read(cell) == [cell]
    cell.register_entry.data.bitstring = b"\x02\0"
    with pytest.raises(UpdatesFailedError) as refused:
        wired.modify(cell)
    assert refused.value.errors[0][0] == OUT_OF_RANGE


def test_headers_that_a_p4info_leaves_out_are_part_of_the_payload(
    wired: RawClient, ports: FramePorts, translated: Program
) -> None:
    config = translated.config()
    config.p4info.ClearField("controller_packet_metadata")
    wired.set_pipeline("VERIFY_AND_COMMIT", config)
    ports.send(3, FRAME)
    packet = wired.receive().packet
    assert packet.payload == bytes([0x01, 0xF5]) + FRAME  # 9 bits of port, 3 spare ones, 4 of the reason
    assert not packet.metadata
    request = p4runtime_pb2.StreamMessageRequest()
    request.packet.payload = bytes([0x01, 0x00]) + FRAME
    wired.send(request)
    assert ports.receive(2) == FRAME


def test_a_p4info_with_other_controller_headers_is_refused(wired: RawClient, translated: Program) -> None:
    config = translated.config()
    config.p4info.controller_packet_metadata[0].metadata[1].bitwidth = 5
    with pytest.raises(grpc.RpcError, match="reason"):
        wired.set_pipeline("VERIFY", config)
