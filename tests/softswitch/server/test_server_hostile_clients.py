"""Clients that say nothing, too much, or do not listen: what they cost the switch, and the others."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from raw_client import Names, RawClient, update
from server_programs import Program
from switch_memory import MIB, peak_memory

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

STREAMS_PER_CONNECTION = 64
OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1))
TIMEOUT = 60.0


def threads(switch: SwitchProcess) -> int:
    return len(list(Path(f"/proc/{switch.pid}/task").iterdir()))


@contextlib.asynccontextmanager
async def mute_streams(address: str, count: int) -> AsyncIterator[list[object]]:
    """Streams on which nothing is sent."""
    channels = [
        grpc.aio.insecure_channel(address, options=OWN_CONNECTION) for _ in range(-(-count // STREAMS_PER_CONNECTION))
    ]
    calls = []
    for channel in channels:
        await channel.channel_ready()
        stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
        calls += [stub.StreamChannel() for _ in range(min(STREAMS_PER_CONNECTION, count - len(calls)))]
    await asyncio.gather(
        *(asyncio.wait_for(call.wait_for_connection(), TIMEOUT) for call in calls), return_exceptions=True
    )
    try:
        yield calls
    finally:
        for channel in channels:
            await channel.close()


def test_mute_streams_do_not_keep_others_out(switch: SwitchProcess, names: Names) -> None:
    """More than there were threads for; they hold none now."""
    before = threads(switch)

    async def main() -> None:
        async with mute_streams(switch.address, 1500):
            await asyncio.to_thread(one_that_works)

    def one_that_works() -> None:
        with RawClient(switch.address) as client:
            assert client.arbitrate((0, 1)) == 0
            client.insert(names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5])))
            assert len(client.read(names.entry("lpm_t"))) == 1
            assert threads(switch) < before + 50

    asyncio.run(main())


def test_a_mute_stream_is_ended_and_one_that_spoke_is_not(start: Callable[..., SwitchProcess], kinds: Program) -> None:
    switch = start(program=kinds.shared_object, p4info=kinds.p4info_file, extra=("--stream-timeout-ms", "50"))
    with RawClient(switch.address) as speaker, RawClient(switch.address) as mute:
        assert speaker.arbitrate((0, 7)) == 0
        with pytest.raises(grpc.RpcError) as caught:
            mute.receive()
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert "MasterArbitrationUpdate" in caught.value.details()
        assert speaker.arbitrate((0, 8)) == 0


def test_only_an_arbitration_counts_as_speaking(start: Callable[..., SwitchProcess], kinds: Program) -> None:
    switch = start(program=kinds.shared_object, p4info=kinds.p4info_file, extra=("--stream-timeout-ms", "1000"))
    with RawClient(switch.address) as other:
        other.send(p4runtime_pb2.StreamMessageRequest(digest_ack={"digest_id": 1}))
        assert other.receive().error.canonical_code == grpc.StatusCode.PERMISSION_DENIED.value[0]
        with pytest.raises(grpc.RpcError) as caught:
            other.receive()
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_of_too_many_mute_streams_the_oldest_goes(start: Callable[..., SwitchProcess]) -> None:
    switch = start(extra=("--stream-timeout-ms", "3600000"))

    async def main() -> None:
        async with mute_streams(switch.address, 1100) as calls:
            code = await asyncio.wait_for(calls[0].code(), TIMEOUT)  # type: ignore[attr-defined]
            assert code == grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(main())


@pytest.fixture
def stranger(switch: SwitchProcess) -> Iterator[p4runtime_pb2_grpc.P4RuntimeStub]:
    with grpc.insecure_channel(switch.address, OWN_CONNECTION) as channel:
        yield p4runtime_pb2_grpc.P4RuntimeStub(channel)


def write_of(size: int) -> p4runtime_pb2.WriteRequest:
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.updates.add().entity.table_entry.metadata = bytes(size)
    return request


def test_long_requests_are_refused_before_they_are_taken(
    switch: SwitchProcess, stranger: p4runtime_pb2_grpc.P4RuntimeStub, start: Callable[..., SwitchProcess]
) -> None:
    before = peak_memory(switch)
    for size, code in (
        (3 * MIB, grpc.StatusCode.PERMISSION_DENIED),
        (5 * MIB, grpc.StatusCode.RESOURCE_EXHAUSTED),
        (300 * MIB, grpc.StatusCode.RESOURCE_EXHAUSTED),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            stranger.Write(write_of(size), timeout=TIMEOUT)
        assert caught.value.code() == code
    assert peak_memory(switch) - before < 100 * MIB
    patient = start(extra=("--max-request-bytes", str(8 * MIB)))
    with grpc.insecure_channel(patient.address, OWN_CONNECTION) as channel, pytest.raises(grpc.RpcError) as caught:
        p4runtime_pb2_grpc.P4RuntimeStub(channel).Write(write_of(5 * MIB), timeout=TIMEOUT)
    assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_client_that_does_not_listen_costs_a_bounded_queue(switch: SwitchProcess) -> None:
    """Each of its messages is answered by an error that quotes it."""
    before = peak_memory(switch)
    message = p4runtime_pb2.StreamMessageRequest()
    message.packet.payload = bytes(2 * MIB)
    last = p4runtime_pb2.StreamMessageRequest()
    last.arbitration.device_id = 99

    with grpc.insecure_channel(switch.address, OWN_CONNECTION) as channel:
        stream = p4runtime_pb2_grpc.P4RuntimeStub(channel).StreamChannel(iter([message] * 150 + [last]))
        with contextlib.suppress(grpc.RpcError):
            stream.code()  # waits for the end, reads nothing
    assert peak_memory(switch) - before < 100 * MIB


def test_a_short_read_cannot_take_much_more_memory_than_its_answer(client: RawClient, switch: SwitchProcess) -> None:
    """An answer that becomes too long has cost the switch 64 MiB, and what encodes one message of it."""
    everything = p4runtime_pb2.Entity(register_entry={})
    times = 70 * MIB // sum(entity.ByteSize() for entity in client.read(everything))
    before = peak_memory(switch)
    with pytest.raises(grpc.RpcError) as caught:
        client.read(*[everything] * times)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert peak_memory(switch) - before < 256 * MIB


def test_answers_that_nobody_takes_are_bounded_together(client: RawClient, names: Names) -> None:
    """Four of 60 MiB fit; not many more do, whatever gRPC has under way, until they are taken."""
    entry = names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5]))
    entry.table_entry.metadata = bytes(2 * MIB)
    client.insert(entry)
    request = p4runtime_pb2.ReadRequest(device_id=1, entities=[names.entry("lpm_t")] * 30)

    def ask() -> Iterator[p4runtime_pb2.ReadResponse]:
        return iter(client.stub.Read(request, timeout=TIMEOUT))

    waiting = []

    def ask_on() -> None:
        for _ in range(16):
            call = ask()
            next(call)  # the rest of it is there, too
            waiting.append(call)

    with pytest.raises(grpc.RpcError) as caught:
        ask_on()
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "256 MiB" in caught.value.details()
    assert len(waiting) >= 4
    for call in waiting:
        assert len(list(call)) == 29
    assert len(list(ask())) == 30


def test_a_client_that_asks_much_at_once_is_refused_and_keeps_nobody_waiting(
    switch: SwitchProcess, names: Names
) -> None:
    """One request is done and one waits; what the same client sends meanwhile is refused, and others are answered."""
    entry = names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5]))
    with RawClient(switch.address) as primary, RawClient(switch.address) as other:
        assert primary.arbitrate((0, 1)) == 0
        primary.insert(entry)
        request = primary.write_request(*[update("MODIFY", entry)] * 40_000)
        assert MIB < request.ByteSize() < 4 * MIB
        refused = 0
        while not refused:
            sent = [primary.stub.Write.future(request, timeout=TIMEOUT) for _ in range(16)]
            other.stub.Capabilities(p4runtime_pb2.CapabilitiesRequest(), timeout=TIMEOUT)
            codes = [one.code() for one in sent]  # waits for the answers
            assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}
            refused = codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED)
            assert refused < len(codes)


@pytest.fixture
def reached(start: Callable[..., SwitchProcess], kinds: Program) -> SwitchProcess:
    """A switch that other machines reach: only on a socket file everybody is the switch's own user."""
    return start(grpc="127.0.0.1:0", program=kinds.shared_object, p4info=kinds.p4info_file)


def ending_of(address: str, request: p4runtime_pb2.WriteRequest) -> grpc.StatusCode:
    """How a Write over a connection of its own ends."""
    with grpc.insecure_channel(address, OWN_CONNECTION) as channel, pytest.raises(grpc.RpcError) as caught:
        p4runtime_pb2_grpc.P4RuntimeStub(channel).Write(request, timeout=TIMEOUT)
    return caught.value.code()


def test_a_request_far_too_long_is_cut_off_while_it_comes_in(reached: SwitchProcess) -> None:
    before = peak_memory(reached)
    assert ending_of(reached.address, write_of(3 * MIB)) == grpc.StatusCode.PERMISSION_DENIED
    assert ending_of(reached.address, write_of(5 * MIB)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    endings = [ending_of(reached.address, write_of(300 * MIB)) for _ in range(2)]
    # On a starved machine a request may be whole before anybody sees that it is too long.
    assert set(endings) <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
    cut = endings.count(grpc.StatusCode.UNAVAILABLE)
    assert cut < 2 or peak_memory(reached) - before < 300 * MIB, "32 MiB, and what comes in until that is seen"
    reached.stop(grace=60)
    assert reached.output.count("cut off: 127.0.0.1 port") == cut


def test_long_requests_of_many_fail_no_write_of_the_primary(reached: SwitchProcess, names: Names) -> None:
    """gRPC's own bound on memory is one for all: who fills it would cut off anybody."""
    request = write_of(64 * MIB)
    with RawClient(reached.address) as primary, ThreadPoolExecutor(8) as hostile:
        assert primary.arbitrate((0, 1)) == 0
        entry = names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5]))
        primary.insert(entry)
        endings = [hostile.submit(ending_of, reached.address, request) for _ in range(24)]
        while not all(one.done() for one in endings):
            primary.write(update("MODIFY", entry))
        primary.write(update("MODIFY", entry))
        # Some may be whole before they are seen to be too long.
        assert {one.result() for one in endings} <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert primary.arbitrate((0, 2)) == 0, "its stream stands, too"


def unfinished(address: str, kilobytes: int) -> socket.socket:
    """A connection that has sent so much of HTTP/2 and nothing that is a message."""
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), timeout=TIMEOUT)
    frame = (1024 - 9).to_bytes(3, "big") + bytes([0xFA, 0, 0, 0, 0, 0]) + bytes(1024 - 9)  # of no known type
    with contextlib.suppress(ConnectionError):  # cut off meanwhile
        made.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + frame * kilobytes)
    return made


def until_ended(connection: socket.socket) -> None:
    """Read until the other side ends it."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass


def test_whoever_has_sent_most_is_cut_off_when_all_have_sent_too_much(
    start: Callable[..., SwitchProcess], kinds: Program, names: Names
) -> None:
    """The limits are 16.25 MiB of one connection and 130 MiB of all."""
    switch = start(
        grpc="127.0.0.1:0", program=kinds.shared_object, p4info=kinds.p4info_file,
        extra=("--max-request-bytes", str(64 << 10)),
    )  # fmt: skip
    with contextlib.ExitStack() as stack, RawClient(switch.address) as primary:
        assert primary.arbitrate((0, 1)) == 0
        until_ended(stack.enter_context(unfinished(switch.address, 18_000)))
        sizes = (16_000, *[12_900] * 10)
        connections = [stack.enter_context(unfinished(switch.address, size)) for size in sizes]
        until_ended(connections[0])
        primary.insert(names.entry("lpm_t", {1: ("lpm", 0x0A000000, 8)}, ("set_lpm", [5])))
        switch.stop(grace=60)
    ports = re.findall(r"cut off: 127\.0\.0\.1 port (\d+)", switch.output)
    assert len(ports) == 2, "none of those that had sent less"
    assert "all connections have too many" in switch.output and "the limit of a connection" in switch.output


def loopbacks() -> list[str]:
    """The loopback addresses of this machine."""
    found = ["127.0.0.1:0"]
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6) as six:
        six.bind(("::1", 0))
        found.append("[::1]:0")
    return found


def test_whole_messages_may_be_as_many_as_one_likes(start: Callable[..., SwitchProcess]) -> None:
    """All in all more than a connection may have that are not whole, in calls and on a stream."""
    message = p4runtime_pb2.StreamMessageRequest()
    message.packet.payload = bytes(60 << 10)
    last = p4runtime_pb2.StreamMessageRequest()
    last.arbitration.device_id = 99
    for address in loopbacks():
        switch = start(grpc=address, extra=("--max-request-bytes", str(64 << 10)))
        with grpc.insecure_channel(switch.address, OWN_CONNECTION) as channel:
            stub = p4runtime_pb2_grpc.P4RuntimeStub(channel)
            for _ in range(300):
                with pytest.raises(grpc.RpcError) as caught:
                    stub.Write(write_of(60 << 10), timeout=TIMEOUT)
                assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
            stream = stub.StreamChannel(iter([message] * 300 + [last]), timeout=TIMEOUT)
            with pytest.raises(grpc.RpcError) as caught:
                for _ in stream:
                    pass
            assert caught.value.code() == grpc.StatusCode.NOT_FOUND
