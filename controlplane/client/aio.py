"""A client of one switch for asyncio: what `SwitchClient` does, and the notices that the switch sends by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self, TypeVar

import grpc
from google.rpc import code_pb2

from catchment.controlplane.client import election
from catchment.controlplane.client.channel import open_async_channel
from catchment.controlplane.client.entity import Entity, Update
from catchment.controlplane.client.entries import TableEntry, from_message
from catchment.controlplane.client.errors import SwitchError, from_rpc, from_write
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.requests import WRITE, Batch, batches, selection, write_request
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_E = TypeVar("_E", bound=Entity)
_KEPT = 1024  # notices of a kind that wait for the caller to take them; older ones are dropped


class AsyncSwitchClient:
    """Tables, groups, counters and registers of one switch; used with `async with`, which connects.

    Every request has a deadline and raises `SwitchError`.

    Args:
        address: gRPC address: ``host:port``, ``unix:PATH`` or ``tls:FOLDER@host:port``.
        device_id: P4Runtime device id.
        name: the switch's name, for messages; the address when left out.
        timeout: seconds for the connection and for each request.
        read_only: do not take the switch over from its controller; it then takes no writes, and tells nothing.
    """

    def __init__(
        self,
        address: str,
        device_id: int = 1,
        *,
        name: str | None = None,
        timeout: float = 5.0,
        read_only: bool = False,
    ) -> None:
        self.where = f"switch {name} ({address})" if name else f"switch at {address}"
        self.timeout = timeout
        self._address = address
        self._device_id = device_id
        self._read_only = read_only
        self._election_id = election.first_bid()
        self._idle: asyncio.Queue[Any] = asyncio.Queue()
        self._packets: asyncio.Queue[Any] = asyncio.Queue()
        self._stream: Any = None
        self._listener: asyncio.Task[None] | None = None
        self._p4info: P4Info | None = None

    async def __aenter__(self) -> Self:
        self._channel = open_async_channel(self._address)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._write = self._channel.unary_unary(WRITE, response_deserializer=p4runtime_pb2.WriteResponse.FromString)
        try:
            async with asyncio.timeout(self.timeout):
                await self._channel.channel_ready()
                if not self._read_only:
                    await self._become_primary()
        except TimeoutError:
            await self.close()
            raise SwitchError(
                f"{self.where}: no P4Runtime server answers within {self.timeout:g} s", code="UNAVAILABLE"
            ) from None
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; the switch keeps its entries."""
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
        await self._channel.close()

    async def p4info(self) -> P4Info:
        """The P4Info of the program; asked from the switch on first use."""
        if self._p4info is None:
            request = p4runtime_pb2.GetForwardingPipelineConfigRequest(device_id=self._device_id)
            try:
                reply = await self._stub.GetForwardingPipelineConfig(request, timeout=self.timeout)
            except grpc.aio.AioRpcError as error:
                raise from_rpc(self.where, "reading its P4Info", error) from None
            self._p4info = P4Info(reply.config.p4info, self.where)
        return self._p4info

    async def write(self, *updates: Update) -> None:
        """Make changes in their order: `await switch.write(+entry, ~group, -member)`.

        All are checked against the program before the first is sent.

        Raises:
            SwitchError: a name or value that the program does not have, or, in `failures`, each update that the switch
                refuses (the others stay).
        """
        if self._read_only:
            raise SwitchError(f"{self.where} was opened for reading; connect without read_only")
        for batch in list(batches(updates, await self.p4info())):
            await self._write_batch(batch)

    async def each(self, pattern: _E) -> AsyncIterator[_E]:
        """What the switch has, as it arrives: `async for entry in switch.each(TableEntry("l2"))`.

        Raises:
            SwitchError: the program has no such name, or the switch refuses.
        """
        p4info = await self.p4info()
        request = p4runtime_pb2.ReadRequest(device_id=self._device_id, entities=[selection(pattern, p4info)])
        try:
            async for reply in self._stub.Read(request, timeout=self.timeout):
                for message in reply.entities:
                    found = pattern.decode(message, p4info)
                    if pattern.matches(found):
                        yield found
        except grpc.aio.AioRpcError as error:
            raise from_rpc(self.where, f"reading {pattern.subject()}", error) from None

    async def packets(self) -> AsyncIterator[bytes]:
        """Packets that the program sends to its controller, until the switch ends the connection."""
        while (message := await self._packets.get()) is not None:
            yield message.packet.payload

    async def idle_timeouts(self) -> AsyncIterator[TableEntry]:
        """Entries that nothing has hit for their `idle_timeout_ns`, until the switch ends the connection."""
        while (message := await self._idle.get()) is not None:
            p4info = await self.p4info()
            for entry in message.idle_timeout_notification.table_entry:
                yield from_message(entry, p4info)

    async def _write_batch(self, batch: Batch) -> None:
        request = write_request(self._device_id, self._election_id, batch.serialized)
        try:
            await self._write(request, timeout=self.timeout)
        except grpc.aio.AioRpcError as error:
            raise from_write(self.where, batch.words(), error) from None

    async def _become_primary(self) -> None:
        self._stream = self._stub.StreamChannel()
        try:
            await self._stream.write(election.bid(self._device_id, self._election_id))
            while (reply := await self._stream.read()) is not grpc.aio.EOF:
                if reply.arbitration.status.code == code_pb2.OK:
                    self._listener = asyncio.create_task(self._listen())
                    return
                # An older notice about another client may still be on its way; the one about this client follows it.
                if election.highest_in(reply) > self._election_id:
                    self._election_id = election.outbid(election.highest_in(reply))
                    await self._stream.write(election.bid(self._device_id, self._election_id))
        except grpc.aio.AioRpcError as error:
            if self._election_id != election.HIGHEST:
                raise from_rpc(self.where, "the control stream", error) from None
        if self._election_id == election.HIGHEST:
            raise SwitchError(election.locked_out(self.where), code="PERMISSION_DENIED")
        raise SwitchError(f"{self.where}: it ended the control stream", code="UNAVAILABLE")

    async def _listen(self) -> None:
        kinds = {"packet": self._packets, "idle_timeout_notification": self._idle}
        try:
            while (message := await self._stream.read()) is not grpc.aio.EOF:
                waiting = kinds.get(message.WhichOneof("update"))
                if waiting is not None:
                    if waiting.qsize() >= _KEPT:
                        waiting.get_nowait()
                    waiting.put_nowait(message)
        except grpc.aio.AioRpcError:
            pass  # the switch is gone; a caller that waits learns of it by the end of the notices
        for waiting in kinds.values():
            waiting.put_nowait(None)
