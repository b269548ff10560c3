"""Clients that take no answer, and ask on: neither their requests nor the answers fill the switch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import grpc
import pytest
from raw_client import Names, RawClient, update
from server_programs import Program
from switch_memory import MIB, peak_memory
from untaking_client import CALLS, UntakingClient

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

LONG = b"\xa2\x06\x80\x80\xc0\x01" + bytes(3 * MIB)  # a field of number 100


@pytest.fixture
def reached(start: Callable[..., SwitchProcess], kinds: Program) -> SwitchProcess:
    """A switch at a TCP port."""
    return start(grpc="127.0.0.1:0", program=kinds.shared_object, p4info=kinds.p4info_file)


def answered_again(client: RawClient) -> p4runtime_pb2.GetForwardingPipelineConfigResponse:
    """The answer that there is as soon as the others are gone."""
    while True:
        try:
            return client.get_pipeline()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise


def ask_often(client: RawClient) -> None:
    """More often than it takes until all those answers wait: clients take turns."""
    for _ in range(4 * CALLS):
        client.get_pipeline()


def test_pipelines_that_nobody_takes_are_bounded_with_other_answers(reached: SwitchProcess, kinds: Program) -> None:
    """Those of 128 answers of 3.5 MiB that fit into 256 MiB are kept; who asks then is told, until they are gone."""
    config = kinds.config()
    config.p4info.pkg_info.organization = "x" * (7 * MIB // 2)
    with RawClient(reached.address) as client:
        assert client.arbitrate() == 0
        client.set_pipeline("VERIFY_AND_COMMIT", config)
        before = peak_memory(reached)
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=1).SerializeToString()
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                untaking = stack.enter_context(UntakingClient(reached.address))
                for _ in range(CALLS):
                    untaking.ask("GetForwardingPipelineConfig", request)
            with pytest.raises(grpc.RpcError) as caught:
                ask_often(client)
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "256 MiB" in caught.value.details()
        assert peak_memory(reached) - before < 400 * MIB
        assert answered_again(client).config.p4info == config.p4info


def test_long_requests_are_given_back_before_their_answers_are_taken(
    reached: SwitchProcess, kinds: Program, names: Names
) -> None:
    """64 of 3 MiB each; a client of a role of its own may write, and every call is answered."""
    before = peak_memory(reached)
    with RawClient(reached.address) as writer, UntakingClient(reached.address) as untaking:
        assert writer.arbitrate(role="own") == 0
        for _ in range(CALLS):
            untaking.ask("Capabilities", LONG)
        assert writer.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest(), timeout=60)
        entry = names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5]))
        entry.table_entry.metadata = bytes(3 * MIB)
        writer.write(update("INSERT", entry), role="own")
        request = writer.write_request(update("MODIFY", entry), role="own").SerializeToString()
        with UntakingClient(reached.address) as other:
            for _ in range(CALLS):
                other.ask("Write", request)
            writer.write(update("MODIFY", entry), role="own")
    assert peak_memory(reached) - before < 120 * MIB


class Turns:
    """Bids of a client, which takes turns with the others: what they have sent before is done by then."""

    def __init__(self, client: RawClient) -> None:
        self._client = client
        self._bids = 0

    def take(self, count: int) -> None:
        for _ in range(count):
            self._bids += 1
            assert self._client.arbitrate((0, self._bids)) == 0


def bid_and_packet(size: int) -> tuple[bytes, bytes]:
    """Stream messages: a bid in a role of its own, which hears of no others, and one that an error quotes."""
    bid = p4runtime_pb2.StreamMessageRequest(arbitration={"device_id": 1, "role": {"name": "idle"}})
    packet = p4runtime_pb2.StreamMessageRequest(packet={"payload": bytes(size)})
    return bid.SerializeToString(), packet.SerializeToString()


def test_streams_keep_nothing_of_what_was_said_on_them(reached: SwitchProcess) -> None:
    """64 streams, each with a message of 3 MiB that is refused: too long to be quoted to one who does not read."""
    before = peak_memory(reached)
    with RawClient(reached.address) as client, UntakingClient(reached.address) as untaking:
        turns = Turns(client)
        for _ in range(CALLS):
            turns.take(4)
            untaking.ask("StreamChannel", *bid_and_packet(3 * MIB), ended=False)
        turns.take(2 * CALLS)
    assert peak_memory(reached) - before < 120 * MIB


def test_streams_that_nobody_reads_are_bounded_together(reached: SwitchProcess) -> None:
    """Those of 640 streams with 0.9 MiB for a client that fit into 256 MiB have it; others have a share."""
    before = peak_memory(reached)
    with RawClient(reached.address) as client, contextlib.ExitStack() as stack:
        turns = Turns(client)
        for _ in range(10):
            turns.take(2 * CALLS)
            untaking = stack.enter_context(UntakingClient(reached.address))
            for _ in range(CALLS):
                untaking.ask("StreamChannel", *bid_and_packet(9 * MIB // 10), ended=False)
        turns.take(2 * CALLS)
        client.send(p4runtime_pb2.StreamMessageRequest(digest_ack={"digest_id": 1}))
        assert client.receive().HasField("error"), "whoever reads is told"
        assert peak_memory(reached) - before < 480 * MIB
