"""A client of one switch for asyncio: what `SwitchClient` does, and the notices that the switch sends by itself."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Self, TypeVar

import grpc

from catchment.controlplane.client.channel import open_async_channel
from catchment.controlplane.client.digests import DigestList
from catchment.controlplane.client.election import Candidate
from catchment.controlplane.client.entity import Entity, Update
from catchment.controlplane.client.entries import TableEntry, from_message
from catchment.controlplane.client.errors import SwitchError, from_rpc, from_stream
from catchment.controlplane.client.exchanges import Exchange, Exchanges, Pause, Reach, Step, TakeOver, reach
from catchment.controlplane.client.p4info import P4Info
from catchment.controlplane.client.packets import PacketIn, PacketOut
from catchment.controlplane.client.requests import WRITE, Selection
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_E = TypeVar("_E", bound=Entity)
_T = TypeVar("_T")
_NOTICES = ("packet", "digest", "idle_timeout_notification", "error")
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
        self.address = address
        self._candidate = Candidate(device_id)
        self._exchanges = Exchanges(self.where, self._candidate, read_only)
        self._notices: dict[str, asyncio.Queue[Any]] = {kind: asyncio.Queue() for kind in _NOTICES}
        self._heard = asyncio.Condition()
        self._election = asyncio.Lock()
        self._stream: Any = None
        self._stream_error: SwitchError | None = None
        self._ended = False
        self._listener: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._channel = open_async_channel(self.address)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._write = self._channel.unary_unary(WRITE, response_deserializer=p4runtime_pb2.WriteResponse.FromString)
        try:
            await self._carry_out(reach(self.where, self.timeout))
            if not self._exchanges.read_only:
                self._stream = self._stub.StreamChannel()
                self._listener = asyncio.create_task(self._listen())
                await self._become_primary(self._candidate.bid)
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

    # The program

    async def p4info(self) -> P4Info:
        """The P4Info of the program; asked from the switch on first use."""
        return await self._carry_out(self._exchanges.p4info())

    async def push_pipeline(self, config: PipelineConfig) -> None:
        """Load a compiled program; everything on the switch starts empty (see `Exchanges.push`)."""
        await self._carry_out(self._exchanges.push(config))

    async def runs(self, config: PipelineConfig) -> bool:
        """Whether the switch runs this very program, as far as it was loaded by `push_pipeline`."""
        return await self._carry_out(self._exchanges.runs(config))

    # Any entity

    async def write(self, *updates: Update) -> None:
        """Make changes in their order: `await switch.write(+entry, ~group, -member)`.

        All are checked against the program before the first is sent.

        Raises:
            SwitchError: a name or value that the program does not have, or, in `failures`, each update that the switch
                refuses (the others stay).
        """
        await self._carry_out(self._exchanges.write(updates))

    async def insert(self, *new: Entity) -> None:
        """Insert entities; errors as `write`."""
        await self.write(*(+entity for entity in new))

    async def modify(self, *changed: Entity) -> None:
        """Change entities that exist; errors as `write`."""
        await self.write(*(~entity for entity in changed))

    async def delete(self, *old: Entity) -> None:
        """Delete entities: entries by table, key and priority, others by number; errors as `write`."""
        await self.write(*(-entity for entity in old))

    async def each(self, *patterns: _E) -> AsyncIterator[_E]:
        """What the switch has, as it arrives: `async for entry in switch.each(TableEntry("l2"))`.

        Several patterns of one kind are one request.

        Raises:
            SwitchError: the program has no such name, or the switch refuses.
        """
        selection = Selection(self._candidate.device_id, await self.p4info(), *patterns)
        try:
            async for reply in self._stub.Read(selection.request, timeout=self.timeout):
                for found in selection.found(reply):
                    yield found
        except grpc.aio.AioRpcError as error:
            raise selection.failed(self.where, error) from None

    # What comes and goes on the control stream

    async def send(self, *packets: PacketOut) -> None:
        """Send packets through the program, in their order.

        The switch answers none; what it says of one that it does not send comes from `refusals`.

        Raises:
            SwitchError: metadata that the program does not have or that do not fit, or the control stream has ended.
        """
        p4info = await self.p4info()
        for request in [packet.request(p4info) for packet in packets]:
            await self._tell(request)

    async def packets(self) -> AsyncIterator[PacketIn]:
        """Packets that the program sends to its controller, until the switch ends the connection."""
        async for message in self._taken("packet"):
            yield PacketIn.decode(message.packet, await self.p4info())

    async def digests(self) -> AsyncIterator[DigestList]:
        """Lists of digests, until the switch ends the connection: of each `Digest` that was inserted.

        A list is acknowledged when the caller comes back for the next one. One that the caller does not come back from
        is not, and its data are sent again.
        """
        async for message in self._taken("digest"):
            found = DigestList.decode(message.digest, await self.p4info())
            yield found
            with contextlib.suppress(SwitchError):  # the stream has ended: the loop ends, too
                await self._tell(found.acknowledgement(await self.p4info()))

    async def idle_timeouts(self) -> AsyncIterator[TableEntry]:
        """Entries that nothing has hit for their `idle_timeout_ns`, until the switch ends the connection."""
        async for message in self._taken("idle_timeout_notification"):
            p4info = await self.p4info()
            for entry in message.idle_timeout_notification.table_entry:
                yield from_message(entry, p4info)

    async def refusals(self) -> AsyncIterator[SwitchError]:
        """What the switch says of packets and acknowledgements that it did not take, until it ends the connection."""
        async for message in self._taken("error"):
            yield from_stream(self.where, message.error)

    async def _taken(self, kind: str) -> AsyncIterator[Any]:
        if self._stream is None:
            raise SwitchError(
                f"{self.where} was opened for reading, so that it tells nothing; connect without read_only"
            )
        waiting = self._notices[kind]
        while (message := await waiting.get()) is not None:
            yield message
        waiting.put_nowait(None)  # for the next caller

    async def _tell(self, request: Any) -> None:
        if self._stream is None:
            raise SwitchError(f"{self.where} was opened for reading; connect without read_only")
        try:
            await self._stream.write(request)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            raise self._stream_error or SwitchError(
                f"{self.where}: it ended the control stream", code="UNAVAILABLE"
            ) from None

    async def _listen(self) -> None:
        try:
            while (message := await self._stream.read()) is not grpc.aio.EOF:
                kind = message.WhichOneof("update")
                if kind == "arbitration":
                    await self._hear(message)
                elif kind in self._notices:
                    waiting = self._notices[kind]
                    if waiting.qsize() >= _KEPT:
                        waiting.get_nowait()
                    waiting.put_nowait(message)
        except grpc.aio.AioRpcError as error:
            self._stream_error = from_rpc(self.where, "the control stream", error)
        finally:  # also where the client itself closes
            for waiting in self._notices.values():
                waiting.put_nowait(None)
            self._ended = True
            async with self._heard:
                self._heard.notify_all()

    async def _hear(self, message: Any) -> None:
        async with self._heard:
            answer = self._candidate.hear(message)
            self._heard.notify_all()
        if answer is not None:
            with contextlib.suppress(asyncio.InvalidStateError):  # the stream has ended: reading it says why
                await self._stream.write(answer)

    async def _become_primary(self, bid: Callable[[], Any]) -> None:
        async with self._election:
            await self._tell(bid())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.timeout), self._heard:
                    await self._heard.wait_for(lambda: self._candidate.elected or self._ended)
        if self._ended or not self._candidate.elected:
            refusal = self._candidate.not_elected(self.where, self.timeout)
            raise refusal if refusal.code == "PERMISSION_DENIED" else self._stream_error or refusal

    # Calls

    async def _carry_out(self, exchange: Exchange[_T]) -> _T:
        try:
            step = next(exchange)
            while True:
                try:
                    answer = await self._answer(step)
                except (grpc.RpcError, SwitchError) as error:
                    step = exchange.throw(error)
                else:
                    step = exchange.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    async def _answer(self, step: Step) -> Any:
        if isinstance(step, Pause):
            return await asyncio.sleep(step.seconds)
        if isinstance(step, TakeOver):
            return await self._become_primary(self._candidate.bid_again)
        if isinstance(step, Reach):
            request = p4runtime_pb2.CapabilitiesRequest()
            return await self._stub.Capabilities(request, timeout=step.seconds, wait_for_ready=True)
        timeout = max(self.timeout, step.seconds)
        if step.method == "Write":
            return await self._write(step.request, timeout=timeout)
        if step.method == "Read":
            return [
                entity async for reply in self._stub.Read(step.request, timeout=timeout) for entity in reply.entities
            ]
        return await getattr(self._stub, step.method)(step.request, timeout=timeout)
