"""The endpoint: asynchronous push and pull through the switch (LuWu, section 3.2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self, final

from catchment.host.transport.addresses import Address, cannot_open
from catchment.host.transport.buffers import bytes_of, checked_exponent, lanes_of
from catchment.host.transport.connection import Connection, argument_error, member_options
from catchment.host.transport.request import Request
from catchment.wire.generated.constants import DataType

if TYPE_CHECKING:
    from catchment.host import _native  # noqa: F401  the parameter of the base
    from catchment.host.transport.buffers import Buffer
    from catchment.host.transport.stream import Stream


@dataclass(frozen=True, slots=True)
class Stall:
    """Work that has not moved for a second or more, as the host reports it to the control plane.

    Attributes:
        stream: which stream and direction.
        seconds: since the last progress.
        seq: the sequence number that is waited for.
        cause: in words: no answer, no credit, no data.
    """

    stream: str
    seconds: float
    seq: int
    cause: str


@final
class Endpoint(Connection["_native.Endpoint"]):
    """A worker, a root or a peer of one job, with its own I/O thread.

    Use `worker`, `root` or `peer` to make one, and `with` or `close` to end it.  All methods may be called from any
    thread.  A child after fork() has no I/O thread: its calls raise; make endpoints after forking.
    """

    def __init__(self, role: str, streams: dict[str, Stream], options: dict[str, Any]) -> None:
        from catchment.host import _native  # noqa: PLC0415  the error for a missing build belongs to the first use

        self._push_bytes = role == "root"
        self._pull_bytes = role == "worker"
        self._packed = role != "root" and any(s.packed for n, s in streams.items() if n != "parameters")
        self._key_frames = min((s.key_frames for s in streams.values() if s.key), default=None)
        config = {
            "role": role,
            "streams": {name: asdict(stream) for name, stream in streams.items()},
            **options,
        }
        try:
            self._native = _native.Endpoint(config)
        except (OSError, _native.AttachError) as error:
            raise cannot_open(error, local=options["local"], switch=options["switch"], path=options["port"]) from error

    @classmethod
    def worker(
        cls,
        *,
        gradients: Stream | None = None,
        parameters: Stream | None = None,
        wid: int,
        local: Address,
        switch: Address,
        port: str | None = None,
        timeout: float = 10.0,
        window: int | None = None,
    ) -> Self:
        """Pushes gradients up (REDUCE) and pulls parameters (BCAST).

        Args:
            gradients: the stream up, or None.
            parameters: the stream down, or None.
            wid: this worker's index in the job.
            local: own address to bind, port 0 for any.
            switch: the switch's address.
            port: "shm:PATH": reach the switch on this machine through the shared-memory port that it was started
                with, instead of by UDP; `local` and `switch` then go into the frames' headers.
            timeout: seconds without any progress after which everything pending fails.
            window: D, how many frames may be in flight or held; the stream's `slots` unless given, and never more.

        Raises:
            EndpointError: kind ``argument`` or ``system``.
        """
        streams = _streams(gradients=gradients, parameters=parameters)
        return cls(
            "worker",
            streams,
            _options(streams, wid=wid, local=local, switch=switch, port=port, timeout=timeout, window=window),
        )

    @classmethod
    def root(
        cls,
        *,
        gradients: Stream | None = None,
        parameters: Stream | None = None,
        local: Address,
        switch: Address,
        port: str | None = None,
        timeout: float = 10.0,
        window: int | None = None,
    ) -> Self:
        """Pulls the sums of the gradients (REDUCE) and pushes parameters (BCAST); arguments as for `worker`."""
        streams = _streams(gradients=gradients, parameters=parameters)
        return cls(
            "root",
            streams,
            _options(streams, wid=0, local=local, switch=switch, port=port, timeout=timeout, window=window),
        )

    @classmethod
    def peer(
        cls,
        *,
        stream: Stream,
        wid: int,
        local: Address,
        switch: Address,
        port: str | None = None,
        timeout: float = 10.0,
        window: int | None = None,
    ) -> Self:
        """Pushes vectors and pulls their sums on the same stream (ALLREDUCE); arguments as for `worker`."""
        streams = _streams(stream=stream)
        return cls(
            "peer",
            streams,
            _options(streams, wid=wid, local=local, switch=switch, port=port, timeout=timeout, window=window),
        )

    def push(self, array: Any, exponent: int | None = None, *, block: bool = False) -> Request:
        """Send `array` as one message; done when every receiver has it.

        Worker and peer: fp32, fp16, bf16 or int32 elements, C-contiguous; floats need the shared `exponent` E
        (-128..127), |x| < 2**E; larger values saturate and are counted.  Root: any contiguous buffer, as bytes.
        A peer's floats may be pushed with `block` instead: each vector has its own E, on which all peers agree on the
        way, so that nothing finite below 2**127 is cut; then all of them push and pull so.

        Raises:
            EndpointError: the argument is refused, or the endpoint has failed or is closed.
        """
        buffer = bytes_of(array, writable=False) if self._push_bytes else lanes_of(array, writable=False)
        if self._packed and buffer.dtype == DataType.INT32:
            raise argument_error("a push of int32 in packed lanes", "push fp32, fp16 or bf16, or use 32-bit lanes")
        if block:
            self._check_block(buffer)
            return self._submit(self._native.push, buffer, 0, block)
        return self._submit(self._native.push, buffer, checked_exponent("push", buffer.dtype, exponent), block)

    def pull(self, array: Any, *, block: bool = False) -> Request:
        """Receive the next message into `array`; done when all of it is in place.

        Root and peer: fp32, fp16 or bf16 elements receive the sum dequantized, int32 the sum as it arrived (of packed
        lanes the 16-bit sums); as many elements as were pushed, `block` as they were.  Worker: any writable contiguous
        buffer, as long as what the root pushed.

        Raises:
            EndpointError: the argument is refused, or the endpoint has failed or is closed.
        """
        buffer = bytes_of(array, writable=True) if self._pull_bytes else lanes_of(array, writable=True)
        if block:
            self._check_block(buffer)
        return self._submit(self._native.pull, buffer, block)

    def _check_block(self, buffer: Buffer) -> None:
        if self._push_bytes or self._pull_bytes or buffer.dtype == DataType.INT32:
            raise argument_error(
                f"block scaling of {buffer.dtype.name}",
                "peers of an all-reduce push and pull floats so; otherwise give the shared exponent E",
            )

    def _submit(self, call: Any, buffer: Buffer, *extra: int) -> Request:
        error = self.error
        if error is not None:
            raise error
        return Request(call(buffer.address, buffer.elements, int(buffer.dtype), *extra, buffer.owner), buffer)

    def stalled(self) -> tuple[Stall, ...]:
        """Streams with work outstanding and no progress for a second or more; empty when all is well."""
        return tuple(Stall(**stall) for stall in self._native.stalled())


def _streams(**named: Stream | None) -> dict[str, Stream]:
    streams = {name: stream for name, stream in named.items() if stream is not None}
    if not streams:
        raise argument_error("an endpoint without streams", "give at least one Stream")
    if len({stream.gen for stream in streams.values()}) != len(streams):
        raise argument_error("gradients and parameters have the same gen", "every stream has a gen of its own")
    return streams


def _options(
    streams: dict[str, Stream],
    *,
    wid: int,
    local: Address,
    switch: Address,
    port: str | None,
    timeout: float,
    window: int | None,
) -> dict[str, Any]:
    workers = min(stream.workers for stream in streams.values())
    options = member_options(workers=workers, wid=wid, local=local, switch=switch, port=port, timeout=timeout)
    if window is not None and not 1 <= window <= min(stream.slots for stream in streams.values()):
        raise argument_error(f"a window of {window} frames", "give 1..slots")
    return options | {"window": window or 0}
