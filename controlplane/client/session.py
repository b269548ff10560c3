"""p4runtime-shell's client, without its defects.

`P4RuntimeClient` of p4runtime-shell 0.0.6 calls `sys.exit` when a switch does not answer, prints to
the terminal, never sets a deadline, joins its reader thread for ever, and its error iterator does
not end on a partly accepted batch. The class here keeps its requests and queues, so that the
interactive shell can run on it, and replaces those parts.
"""

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
from p4.v1 import p4runtime_pb2, p4runtime_pb2_grpc
from p4runtime_sh.p4runtime import P4RuntimeClient

from catchment.controlplane.client.errors import SwitchError, from_rpc

ELECTION_HIGH = 1
"""Upper half of our election ids: with p4runtime-shell's default (1, 0) below all of ours."""

_SLOW_METHODS = {"SetForwardingPipelineConfig": 60.0}
_STREAM_KINDS = ("arbitration", "packet", "digest", "idle_timeout_notification", "unknown")

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


def new_election_id() -> tuple[int, int]:
    """An election id above every earlier one: the newest controller is the primary."""
    return (ELECTION_HIGH, time.time_ns())


class Session(P4RuntimeClient):  # type: ignore[misc]
    """One connection to one switch; raises `SwitchError` where the base class exits.

    Args:
        where: the switch in words, for messages.
        device_id: P4Runtime device id.
        address: gRPC address, ``host:port``.
        timeout: seconds for the connection and for each request.
        primary: take the switch over for writing; otherwise only requests that read are possible
            and whoever is primary stays so.
    """

    def __init__(self, where: str, device_id: int, address: str, *, timeout: float, primary: bool) -> None:
        self.where = where
        self.address = address
        self.timeout = timeout
        self.primary = primary
        self.stream: Any = None
        self.stream_recv_thread: threading.Thread | None = None
        self._stream_error: SwitchError | None = None
        self._closing = False
        self._ended = threading.Event()
        self._on_end: Callable[[], None] | None = None
        self._election = threading.RLock()
        try:
            super().__init__(device_id, address, new_election_id())
        except SystemExit:
            raise SwitchError(f"{where}: {address!r} is not a gRPC address such as 127.0.0.1:9559") from None

    def set_up_stream(self) -> None:
        """Wait for the server, then open the arbitration stream (called by the base class)."""
        self.stream_out_q: queue.Queue[Any] = queue.Queue()
        self.stream_in_q: dict[str, queue.Queue[Any]] = {k: queue.Queue() for k in _STREAM_KINDS}
        try:
            grpc.channel_ready_future(self.channel).result(timeout=self.timeout)
        except grpc.FutureTimeoutError:
            self.channel.close()
            raise SwitchError(
                f"{self.where}: no P4Runtime server answers at {self.address} within "
                f"{self.timeout:g} s; start the switch (`catchment net up` or `catchment switch "
                "run`) or correct its grpc address in the topology",
                code="UNAVAILABLE",
            ) from None
        timed = grpc.intercept_channel(self.channel, _Deadline(self.timeout))
        self.stub = p4runtime_pb2_grpc.P4RuntimeStub(timed)
        if not self.primary:
            return
        raw = p4runtime_pb2_grpc.P4RuntimeStub(self.channel)
        self.stream = raw.StreamChannel(iter(self.stream_out_q.get, None))
        self.stream_recv_thread = threading.Thread(
            target=self._receive, args=(self.stream,), name=f"p4runtime-{self.where}", daemon=True
        )
        self.stream_recv_thread.start()
        try:
            self.handshake()
        except SwitchError:
            self.tear_down()
            raise

    def _receive(self, stream: Iterator[Any]) -> None:
        try:
            for message in stream:
                kind = message.WhichOneof("update")
                self.stream_in_q[kind if kind in self.stream_in_q else "unknown"].put(message)
        except grpc.RpcError as error:
            if not self._closing:
                self._stream_error = from_rpc(self.where, "the control stream", error)
        for waiting in self.stream_in_q.values():
            waiting.put(None)
        self._ended.set()
        if self._on_end is not None and not self._closing:
            self._on_end()

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call once, from another thread, when the switch ends the control stream: it died or was cut off."""
        self._on_end = callback
        if self._ended.is_set():
            callback()

    def handshake(self) -> None:
        """Become the primary controller of the switch.

        Raises:
            SwitchError: the switch does not answer, refuses, or keeps another primary.
        """
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.high, request.arbitration.election_id.low = self.election_id
        self.stream_out_q.put(request)
        deadline = time.monotonic() + self.timeout
        while True:
            reply = self.get_stream_packet("arbitration", timeout=max(0.0, deadline - time.monotonic()))
            if reply is None:
                raise self._stream_error or SwitchError(
                    f"{self.where}: no answer to the request to become its controller within "
                    f"{self.timeout:g} s; is device id {self.device_id} right?",
                    code="DEADLINE_EXCEEDED",
                )
            if reply.arbitration.status.code == code_pb2.OK:
                return
            primary = reply.arbitration.election_id
            # An older notice about somebody else may still be on its way; ours follows it.
            if (primary.high, primary.low) > self.election_id:
                raise SwitchError(
                    f"{self.where}: another controller with a higher election id is primary "
                    f"({reply.arbitration.status.message or 'no reason given'}); close it first",
                    code="PERMISSION_DENIED",
                )

    def take_over(self) -> None:
        """Become primary again after another controller took the switch over."""
        with self._election:
            while not self.stream_in_q["arbitration"].empty():
                self.stream_in_q["arbitration"].get_nowait()
            self.election_id = new_election_id()
            self.handshake()

    def get_stream_packet(self, type_: str, timeout: float | None = 1) -> Any:
        """The next stream message of one kind, or None when none arrives in time."""
        try:
            return self.stream_in_q[type_].get(timeout=timeout)
        except queue.Empty:
            return None

    def write(self, req: Any) -> Any:
        """Send a write; the caller reads the refused updates out of the `grpc.RpcError`."""
        req.device_id = self.device_id
        req.election_id.high, req.election_id.low = self.election_id
        return self.stub.Write(req)

    def write_update(self, update: Any) -> Any:
        """Send one update (used by the interactive shell)."""
        return self.write(p4runtime_pb2.WriteRequest(updates=[update]))

    def tear_down(self) -> None:
        """Close the stream and the channel; returns even when the switch hangs."""
        self._closing = True
        self.stream_out_q.put(None)
        if self.stream_recv_thread is not None:
            self.stream_recv_thread.join(timeout=1.0)
            if self.stream_recv_thread.is_alive():
                self.stream.cancel()
                self.stream_recv_thread.join(timeout=1.0)
        with contextlib.suppress(ValueError):  # closed twice
            self.channel.close()
