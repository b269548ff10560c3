"""One blocking connection to a P4Runtime server: deadlines, the control stream, and which client is primary."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
from google.rpc import code_pb2

from catchment.controlplane.client.aside import CLOSE_SECONDS, Aside, within
from catchment.controlplane.client.channel import open_channel
from catchment.controlplane.client.election import Candidate
from catchment.controlplane.client.errors import SwitchError, from_rpc
from catchment.controlplane.client.exchanges import Call, Exchange, Pause, Reach, TakeOver, reach
from catchment.controlplane.client.requests import WRITE
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_T = TypeVar("_T")


class Session:
    """One connection to one switch. Ctrl-C leaves it usable: a call that was under way then ends before the next.

    Args:
        where: the switch in words, for messages.
        address: gRPC address: ``host:port``, ``unix:PATH`` or ``tls:FOLDER@host:port``.
        candidate: the client's part in the election of a primary.
        timeout: seconds for the connection and for each request.
        primary: take the switch over for writing; otherwise only requests that read are possible
            and the client that is primary stays so.

    Raises:
        SwitchError: nothing answers at the address in time, or the switch refuses or keeps another primary.
    """

    def __init__(self, where: str, address: str, candidate: Candidate, *, timeout: float, primary: bool) -> None:
        self.where = where
        self.timeout = timeout
        self._candidate = candidate
        self._on_demotion: Callable[[], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._stream: Any = None
        self._receiver: threading.Thread | None = None
        self._stream_error: SwitchError | None = None
        self._closing = False
        self._ended = False
        self._heard = threading.Condition()  # guards the candidate, and tells that it heard something
        self._election = threading.Lock()
        self._outbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._aside = Aside()
        self._channel = open_channel(address)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channel)
        self._write = self._channel.unary_unary(WRITE, response_deserializer=p4runtime_pb2.WriteResponse.FromString)
        try:
            self.carry_out(reach(where, timeout))
            if primary:
                self._aside(self._open_stream)
        except BaseException:
            self.close()
            raise

    # The control stream

    def _open_stream(self) -> None:
        self._stream = self._stub.StreamChannel(iter(self._outbox.get, None))
        self._receiver = threading.Thread(target=self._receive, name=f"p4runtime-{self.where}", daemon=True)
        self._receiver.start()
        self._become_primary(self._candidate.bid)

    def _receive(self) -> None:
        try:
            for message in self._stream:
                if message.HasField("arbitration"):
                    self._hear(message)
        except grpc.RpcError as error:
            if not self._closing:
                self._stream_error = from_rpc(self.where, "the control stream", error)
        with self._heard:
            self._ended = True
            self._heard.notify_all()
        if self._on_end is not None and not self._closing:
            self._on_end()

    def _hear(self, message: Any) -> None:
        with self._heard:
            was_elected = self._candidate.elected
            answer = self._candidate.hear(message)
            if answer is not None:
                self._outbox.put(answer)
            self._heard.notify_all()
        if was_elected and message.arbitration.status.code != code_pb2.OK and self._on_demotion is not None:
            self._on_demotion()

    def call_at_end(self, callback: Callable[[], None]) -> None:
        """Call once, from another thread, when the switch ends the control stream: it died or was cut off."""
        self._on_end = callback
        if self._ended:
            callback()

    def call_when_demoted(self, callback: Callable[[], None]) -> None:
        """Call each time, from another thread, when another client takes the switch over, or such a one leaves."""
        self._on_demotion = callback

    def _become_primary(self, bid: Callable[[], Any]) -> None:
        """Send a bid and wait until it is answered.

        Raises:
            SwitchError: the switch does not answer or refuses, or another client holds the highest election id.
        """
        with self._election, self._heard:
            self._outbox.put(bid())
            self._heard.wait_for(lambda: self._candidate.elected or self._ended, self.timeout)
            if self._candidate.elected and not self._ended:
                return
            refusal = self._candidate.not_elected(self.where, self.timeout)
        raise refusal if refusal.code == "PERMISSION_DENIED" else self._stream_error or refusal

    # Calls

    def carry_out(self, exchange: Exchange[_T]) -> _T:
        """Make the calls of an exchange, and give what it gives; errors are its own."""
        try:
            step = next(exchange)
            while True:
                try:
                    answer = self._wait(step) if isinstance(step, Pause) else self._aside(self._answer, step)
                except (grpc.RpcError, SwitchError) as error:
                    step = exchange.throw(error)
                else:
                    step = exchange.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    @staticmethod
    def _wait(pause: Pause) -> Any:
        time.sleep(pause.seconds)

    def _answer(self, step: Call | TakeOver | Reach) -> Any:
        if isinstance(step, TakeOver):
            return self._become_primary(self._candidate.bid_again)
        if isinstance(step, Reach):
            request = p4runtime_pb2.CapabilitiesRequest()
            return self._stub.Capabilities(request, timeout=step.seconds, wait_for_ready=True)
        timeout = max(self.timeout, step.seconds)
        if step.method == "Write":
            return self._write(step.request, timeout=timeout)
        if step.method == "Read":
            return [entity for reply in self._replies(step.request) for entity in reply.entities]
        return getattr(self._stub, step.method)(step.request, timeout=timeout)

    def read(self, request: Any) -> Iterator[Any]:
        """Each `p4.v1.ReadResponse`, as it arrives; a broken request is a `grpc.RpcError`."""
        replies: list[Iterator[Any]] = []  # not in the main thread's hands: it is locked where it goes, too
        try:
            self._aside(lambda: replies.append(self._replies(request)))
            while (reply := self._aside(lambda: next(replies[0], None))) is not None:
                yield reply
        finally:
            self._aside.later(replies.clear)

    def _replies(self, request: Any) -> Iterator[Any]:
        replies: Iterator[Any] = self._stub.Read(request, timeout=self.timeout)
        return replies

    def close(self) -> None:
        """Close the stream and the channel; returns even when the switch hangs, or Ctrl-C came in the middle."""
        self._closing = True
        within(CLOSE_SECONDS, self._close)

    def _close(self) -> None:
        self._outbox.put(None)
        if self._receiver is not None:
            self._receiver.join(timeout=1.0)
            if self._receiver.is_alive():
                self._stream.cancel()
                self._receiver.join(timeout=1.0)
        with contextlib.suppress(ValueError):  # closed twice
            self._channel.close()
