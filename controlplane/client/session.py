"""One connection to a P4Runtime server: deadlines, the control stream, and which client is primary."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import grpc
from google.rpc import code_pb2

from catchment.controlplane.client import election
from catchment.controlplane.client.channel import open_channel
from catchment.controlplane.client.errors import SwitchError, from_rpc
from catchment.controlplane.client.requests import WRITE, write_request
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_SLOW_METHODS = {"SetForwardingPipelineConfig": 60.0}
_STREAM_KINDS = ("arbitration", "packet", "digest", "idle_timeout_notification", "error")

_CallDetails = namedtuple(
    "_CallDetails", ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression")
)


class _Deadline(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[misc]
    """Gives every request a deadline."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def _timed(self, details: Any) -> _CallDetails:
        method = details.method.rsplit("/", 1)[-1]
        seconds = max(self._seconds, _SLOW_METHODS.get(method, 0.0))
        return _CallDetails(details.method, seconds, details.metadata, details.credentials, False, None)

    def intercept_unary_unary(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        return continuation(self._timed(client_call_details), request)

    def intercept_unary_stream(self, continuation: Callable[..., Any], client_call_details: Any, request: Any) -> Any:
        return continuation(self._timed(client_call_details), request)


class Session:
    """One connection to one switch.

    Args:
        where: the switch in words, for messages.
        device_id: P4Runtime device id.
        address: gRPC address: ``host:port``, ``unix:PATH`` or ``tls:FOLDER@host:port``.
        timeout: seconds for the connection and for each request.
        primary: take the switch over for writing; otherwise only requests that read are possible
            and the client that is primary stays so.

    Attributes:
        stub: the service; each of its requests has a deadline.
        election_id: the one that it asked for last.
        term: counts how often it became the primary or another client did: while it stays the same, nobody else wrote.
        rival: the election id of the client that took the switch over since; None while this one is the primary.

    Raises:
        SwitchError: nothing answers at the address in time, or the switch refuses or keeps another primary.
    """

    def __init__(self, where: str, device_id: int, address: str, *, timeout: float, primary: bool) -> None:
        self.where = where
        self.device_id = device_id
        self.address = address
        self.timeout = timeout
        self.primary = primary
        self.election_id = election.first_bid()
        self.term = 0
        self.rival: election.ElectionId | None = None
        self._highest = (0, 0)
        self._elected = False
        self._on_demotion: Callable[[], None] | None = None
        self._stream: Any = None
        self._receiver: threading.Thread | None = None
        self._stream_error: SwitchError | None = None
        self._closing = False
        self._ended = threading.Event()
        self._on_end: Callable[[], None] | None = None
        self._election = threading.RLock()
        self._outbox: queue.Queue[Any] = queue.Queue()
        self._inboxes: dict[str, queue.Queue[Any]] = {kind: queue.Queue() for kind in _STREAM_KINDS}
        self._channel = open_channel(address)
        self._wait_until_ready()
        timed = grpc.intercept_channel(self._channel, _Deadline(timeout))
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(timed)
        self._write = timed.unary_unary(WRITE, response_deserializer=p4runtime_pb2.WriteResponse.FromString)
        if primary:
            self._open_stream()

    def _wait_until_ready(self) -> None:
        try:
            grpc.channel_ready_future(self._channel).result(timeout=self.timeout)
        except grpc.FutureTimeoutError:
            self._channel.close()
            raise SwitchError(
                f"{self.where}: no P4Runtime server answers at {self.address} within "
                f"{self.timeout:g} s; start the switch (`catchment net up` or `catchment switch "
                "run`) or correct its grpc address in the topology",
                code="UNAVAILABLE",
            ) from None

    def _open_stream(self) -> None:
        raw = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._stream = raw.StreamChannel(iter(self._outbox.get, None))
        self._receiver = threading.Thread(target=self._receive, name=f"p4runtime-{self.where}", daemon=True)
        self._receiver.start()
        try:
            self._handshake()
        except SwitchError:
            self.close()
            raise

    def _receive(self) -> None:
        try:
            for message in self._stream:
                kind = message.WhichOneof("update")
                if kind == "arbitration":
                    self._note_arbitration(message)
                self._inboxes[kind if kind in self._inboxes else "error"].put(message)
        except grpc.RpcError as error:
            if not self._closing:
                self._stream_error = from_rpc(self.where, "the control stream", error)
        for waiting in self._inboxes.values():
            waiting.put(None)
        self._ended.set()
        if self._on_end is not None and not self._closing:
            self._on_end()

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call once, from another thread, when the switch ends the control stream: it died or was cut off."""
        self._on_end = callback
        if self._ended.is_set():
            callback()

    def call_when_demoted(self, callback: Callable[[], None]) -> None:
        """Call each time, from another thread, when another client takes the switch over, or such a one leaves."""
        self._on_demotion = callback

    def _note_arbitration(self, message: Any) -> None:
        highest = election.highest_in(message)
        self._highest = max(self._highest, highest)
        self.term += 1
        if message.arbitration.status.code == code_pb2.OK:
            self.rival, self._elected = None, True
            return
        if not self._elected:
            return
        self.rival = highest if message.arbitration.status.code == code_pb2.ALREADY_EXISTS else None
        if self._on_demotion is not None:
            self._on_demotion()

    def _handshake(self) -> None:
        """Become the primary controller of the switch.

        Raises:
            SwitchError: the switch does not answer or refuses, or another client holds the highest election id.
        """
        self._elected = False
        self._outbox.put(election.bid(self.device_id, self.election_id))
        deadline = time.monotonic() + self.timeout
        while True:
            reply = self._next("arbitration", timeout=max(0.0, deadline - time.monotonic()))
            if reply is None:
                raise self._not_elected()
            if reply.arbitration.status.code == code_pb2.OK:
                return
            # An older notice about another client may still be on its way; the one about this client follows it.
            if election.highest_in(reply) > self.election_id:
                self.election_id = election.outbid(election.highest_in(reply))
                self._outbox.put(election.bid(self.device_id, self.election_id))

    def _not_elected(self) -> SwitchError:
        if self.election_id == election.HIGHEST:  # the switch ends the stream of who asks for an id that is in use
            return SwitchError(election.locked_out(self.where), code="PERMISSION_DENIED")
        return self._stream_error or SwitchError(
            f"{self.where}: no answer to the request to become its controller within {self.timeout:g} s; is device id "
            f"{self.device_id} right?",
            code="DEADLINE_EXCEEDED",
        )

    def take_over(self) -> None:
        """Become primary again after another controller took the switch over.

        Raises:
            SwitchError: the switch does not answer, or another client holds the highest election id.
        """
        with self._election:
            while not self._inboxes["arbitration"].empty():
                self._inboxes["arbitration"].get_nowait()
            self.election_id = election.outbid(max(self._highest, self.election_id))
            self._handshake()

    def _next(self, kind: str, timeout: float | None) -> Any:
        """The next stream message of one kind; None when none arrives in time or the stream has ended."""
        try:
            return self._inboxes[kind].get(timeout=timeout)
        except queue.Empty:
            return None

    def write(self, updates: bytes) -> None:
        """Send a serialized `p4.v1.WriteRequest` that has updates alone; a broken request is a `grpc.RpcError`."""
        self._write(write_request(self.device_id, self.election_id, updates))

    def read(self, query: Any) -> Iterator[Any]:
        """The entities that a query selects, as they arrive; a broken request is a `grpc.RpcError`."""
        for reply in self.stub.Read(p4runtime_pb2.ReadRequest(device_id=self.device_id, entities=[query])):
            yield from reply.entities

    def p4info(self) -> Any:
        """The P4Info of the program that the switch runs; a broken request is a `grpc.RpcError`."""
        request = p4runtime_pb2.GetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            response_type=p4runtime_pb2.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        )
        return self.stub.GetForwardingPipelineConfig(request).config.p4info

    def close(self) -> None:
        """Close the stream and the channel; returns even when the switch hangs."""
        self._closing = True
        self._outbox.put(None)
        if self._receiver is not None:
            self._receiver.join(timeout=1.0)
            if self._receiver.is_alive():
                self._stream.cancel()
                self._receiver.join(timeout=1.0)
        with contextlib.suppress(ValueError):  # closed twice
            self._channel.close()
