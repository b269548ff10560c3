"""Who connects to a controller without a request: each is counted and named, and none stays."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from catchment.controlplane.controller import certificates, door
from catchment.controlplane.controller.door import Door, Ended
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.metrics import ControllerCollector
from catchment.controlplane.controller.trust import Trust
from catchment.wire.service import CONTROLLER_NAME, OPERATOR_NAME
from catchment.wire.socket_folder import socket_folder

LONG = 600.0  # never over in a test


@asynccontextmanager
async def opened(folder: Path, first_request: float) -> AsyncIterator[tuple[Door, str]]:
    """A door before a gRPC server with TLS whose one method says where its caller is."""
    certificates.make(folder, ["h1"])
    server = grpc.aio.server()

    async def who(request: bytes, context: Any) -> bytes:
        return front.peer(context.peer()).encode()

    method = {"Who": grpc.unary_unary_rpc_method_handler(who)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", method),))
    with socket_folder() as place:
        inside = f"{place}/inside.sock"
        server.add_secure_port(f"unix:{inside}", Trust(folder).server_credentials())
        await server.start()
        front = Door(inside, first_request)
        try:
            yield front, await front.listen("127.0.0.1:0")
        finally:
            await server.stop(None)
            await front.close()


def trying(body: Callable[[], Awaitable[None]]) -> None:
    """Run a test's coroutine; an error, not a hang, if it never ends."""

    async def bounded() -> None:
        async with asyncio.timeout(120):
            await body()

    asyncio.run(bounded())


async def connect(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def refused(address: str, **tls: Any) -> str:
    """Send what is no request until the other side ends the connection; returns its address as the door names it."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as made:
        name = "ipv4:{}:{}".format(*made.getsockname())
        reader, writer = await asyncio.open_connection(sock=made, **tls)
        writer.write(b"GET / HTTP/1.1\r\n\r\n" * 20)
        await until_ended(reader)
        writer.close()
    return name


async def until_ended(reader: asyncio.StreamReader) -> None:
    """Read until the other side ends the connection, however it does."""
    try:
        while await reader.read(1 << 16):
            pass
    except (OSError, ssl.SSLError):
        pass


async def until(front: Door, how: Ended, count: int) -> None:
    while front.ended[how] < count:
        await asyncio.sleep(0.005)


def caller(folder: Path, address: str) -> grpc.aio.Channel:
    own = certificates.load(folder, OPERATOR_NAME)
    credentials = grpc.ssl_channel_credentials(own.authority, own.key, own.certificate)
    options = (("grpc.ssl_target_name_override", CONTROLLER_NAME),)
    return grpc.aio.secure_channel(address, credentials, options)


def test_failed_handshakes_are_counted_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with opened(tmp_path, LONG) as (front, address):
            names = [await refused(address)]
            await until(front, Ended.HANDSHAKE, 1)
            without = ssl.create_default_context(cadata=certificates.load(tmp_path, OPERATOR_NAME).authority.decode())
            names.append(await refused(address, ssl=without, server_hostname=CONTROLLER_NAME))
            await until(front, Ended.HANDSHAKE, 2)
            assert front.ended == {Ended.HANDSHAKE: 2, Ended.SILENT: 0, Ended.FULL: 0, Ended.LEFT: 0}
            said = [record.getMessage() for record in caplog.records if record.name == door.__name__]
            assert said == [f"refused: {name} failed the TLS handshake" for name in names]

    with caplog.at_level(logging.WARNING):
        trying(body)


def test_who_leaves_is_counted(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, LONG) as (front, address):
            _, writer = await connect(address)
            writer.close()
            await until(front, Ended.LEFT, 1)
            shown = {
                tuple(sample.labels.values()): sample.value
                for family in ControllerCollector(
                    SimpleNamespace(switches={}, jobs={}, store=SimpleNamespace(trouble=None)),  # type: ignore[arg-type]
                    front,
                ).collect()
                for sample in family.samples
                if sample.name == "catchment_controller_refused_connections_total"
            }
            assert shown == {("handshake",): 0, ("silent",): 0, ("full",): 0, ("left",): 1}

    trying(body)


def test_who_says_nothing_is_cut_off_and_who_asked_stays(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, 0.5) as (front, address), caller(tmp_path, address) as channel:
            who = channel.unary_unary("/Test/Who")
            while True:  # a slow machine may not come to its request in that time
                try:
                    peer = await who(b"")
                    break
                except grpc.aio.AioRpcError:
                    continue
            assert peer.startswith(b"ipv4:127.0.0.1:")
            silent = front.ended[Ended.SILENT]
            reader, writer = await connect(address)
            await until_ended(reader)
            writer.close()
            await until(front, Ended.SILENT, silent + 1)
            assert await who(b"") == peer, "a connection with a request was ended"

    trying(body)


def test_the_oldest_without_a_request_makes_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "MOST_SILENT", 3)

    async def body() -> None:
        async with opened(tmp_path, LONG) as (front, address), caller(tmp_path, address) as channel:
            held = [await connect(address) for _ in range(3)]
            await channel.unary_unary("/Test/Who")(b"")
            await until_ended(held[0][0])
            await until(front, Ended.FULL, 1)
            later = await connect(address)  # the caller is silent no longer: these are three again
            await channel.unary_unary("/Test/Who")(b"")
            assert front.ended[Ended.FULL] == 1
            for _, writer in (*held, later):
                writer.close()

    trying(body)


@pytest.mark.parametrize(
    "wrong",
    ["nonsense", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", ":9600", "9600"],
)
def test_what_is_no_address_is_said(tmp_path: Path, wrong: str) -> None:
    async def body() -> None:
        async with opened(tmp_path, LONG) as (front, _):
            with pytest.raises(ControllerError, match=f"cannot listen on {wrong}: give HOST:PORT"):
                await front.listen(wrong)

    trying(body)


def test_an_address_that_is_taken_is_said(tmp_path: Path) -> None:
    async def body() -> None:
        async with opened(tmp_path, LONG) as (front, address):
            with pytest.raises(ControllerError, match=f"cannot listen on {address}"):
                await front.listen(address)

    trying(body)
