"""All-reduce of a few vectors at the lowest latency (P4SGD, section III-C and Algorithm 3, corrected)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, final

from catchment.host.errors import EndpointError
from catchment.host.transport.addresses import Address, cannot_open, checked_address, shm_path
from catchment.host.transport.buffers import lanes_of
from catchment.host.transport.endpoint import Stall
from catchment.wire.generated.constants import DataType, Flag

if TYPE_CHECKING:
    from types import TracebackType

    from catchment.host import _native
    from catchment.host.transport.stream import Stream


@final
class Reduction:
    """The all-reduce of one array, to be run as often as wanted; `AllReducer.prepare` makes it.

    The array must stay as it is between `start` and the end of `wait`.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Reduction) -> None:
        self._native = native

    def run(self) -> None:
        """Add the array up over all workers; the sum is in place on return.

        The caller's thread runs the protocol, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            EndpointError: it failed.
        """
        if not self._native.run():
            self._raise()

    def start(self) -> None:
        """Send what the slots take and return; the protocol goes on in `wait`, of this reduction or another."""
        self._native.start()

    def wait(self, timeout: float | None = None) -> None:
        """Run the protocol until the sum is in place.

        Raises:
            EndpointError: it failed.
            TimeoutError: not done after `timeout` seconds; `wait` again to go on.
        """
        if not self._native.wait(1e9 if timeout is None else timeout):
            raise TimeoutError(f"the all-reduce is not done after {timeout} s; wait again to go on")
        self._raise()

    def done(self) -> bool:
        """True when nothing is under way."""
        return self._native.done

    @property
    def flags(self) -> Flag:
        """Flags of all its sums, ORed: SAT when a worker's value saturated or was not finite."""
        return Flag(self._native.flags)

    @property
    def max_raw(self) -> int:
        """Largest magnitude of the int32 sums as they arrived."""
        return self._native.max_raw

    @property
    def saturated(self) -> int:
        """How many of its own values were cut to the range, NaN and infinities included."""
        return self._native.saturated

    @property
    def nonfinite(self) -> int:
        """How many of its own values were NaN or infinite."""
        return self._native.nonfinite

    @property
    def latency(self) -> float:
        """Seconds from the last start to its end."""
        return self._native.latency

    def _raise(self) -> None:
        failure = self._native.failure
        if failure is not None:
            raise EndpointError(**failure)


@final
class AllReducer:
    """A worker of a job on p4sgd.p4: sums of a few vectors, as soon as the switch has them.

    There is no thread behind it.  The caller's thread runs the protocol inside `all_reduce`, `run`, `wait` and
    `close`, polling for `spin` seconds before it sleeps.  All workers must make the same calls in the same order.
    Not for use by two threads at once (but `stalled` and `interrupt`), nor in a child after fork().

    Args:
        stream: the job: gen, workers, slots, lanes (8 in the default build of p4sgd.p4).
        wid: this worker's index in the job.
        local: own address to bind, port 0 for any.
        switch: the switch's address.
        port: "shm:PATH": a shared-memory port of a switch on this machine, instead of UDP.
        timeout: seconds without any progress, while waiting, after which everything pending fails.
        window: vectors that may be under way, at most the stream's slots; the smaller of those and 64 by default.
        spin: seconds to poll before sleeping.

    Raises:
        EndpointError: kind ``argument`` or ``system``.
    """

    def __init__(
        self,
        *,
        stream: Stream,
        wid: int,
        local: Address,
        switch: Address,
        port: str | None = None,
        timeout: float = 10.0,
        window: int | None = None,
        spin: float = 200e-6,
    ) -> None:
        from catchment.host import _native  # noqa: PLC0415  the error for a missing build belongs to the first use

        if not 0 <= wid < stream.workers:
            raise _argument(f"worker index {wid} of {stream.workers} workers", "give 0..workers-1")
        if not timeout > 0:
            raise _argument(f"a timeout of {timeout} s", "give a positive number of seconds")
        if not spin >= 0:
            raise _argument(f"polling for {spin} s", "give seconds, 0 to sleep at once")
        if window is None:
            window = min(stream.slots, 64)
        if not 1 <= window <= stream.slots:
            raise _argument(f"a window of {window} vectors", "give 1..slots")
        config: dict[str, Any] = {
            "stream": {
                "gen": stream.gen,
                "workers": stream.workers,
                "slots": stream.slots,
                "base_seq": stream.base_seq,
                "lanes": stream.lanes,
                "param_bytes": stream.param_bytes,
            },
            "wid": wid,
            "local": checked_address("local", local, least=0 if port is None else 1),
            "port": None if port is None else shm_path(port),
            "switch": checked_address("switch", switch, least=1),
            "timeout": float(timeout),
            "window": window,
            "spin": float(spin),
        }
        try:
            self._native = _native.AllReducer(config)
        except (OSError, _native.AttachError) as error:
            raise cannot_open(error, local=local, switch=switch, path=config["port"]) from error

    def prepare(self, array: Any, exponent: int | None = None, out: Any = None) -> Reduction:
        """The all-reduce of `array`, for many runs: what is checked once costs nothing later.

        Args:
            array: fp32, fp16, bf16 or int32 elements, C-contiguous.
            exponent: E for floats (-128..127), the same at every worker, |x| < 2**E; larger values saturate and are
                counted.  int32 is summed as it is, wrapping.
            out: takes the sum; `array` itself when None.

        Raises:
            EndpointError: kind ``argument``.
        """
        from catchment.host import _native  # noqa: PLC0415  as above

        source = lanes_of(array, writable=out is None)
        target = source if out is None else lanes_of(out, writable=True)
        if (target.dtype, target.elements) != (source.dtype, source.elements):
            raise _argument(
                f"{source.elements} x {source.dtype.name} into {target.elements} x {target.dtype.name}",
                "out must be like array",
            )
        native = _native.Reduction(
            self._native,
            source.address,
            target.address,
            source.elements,
            int(source.dtype),
            _exponent(source.dtype, exponent),
            (source.owner, target.owner),
        )
        return Reduction(native)

    def all_reduce(self, array: Any, exponent: int | None = None, out: Any = None) -> Reduction:
        """Add `array` up over all workers and wait; arguments as for `prepare`.

        Raises:
            EndpointError: an argument is refused, or it failed.
        """
        reduction = self.prepare(array, exponent, out)
        reduction.run()
        return reduction

    @property
    def local(self) -> Address:
        """The address it is bound to."""
        return self._native.local

    @property
    def error(self) -> EndpointError | None:
        """The error that ended it, if one did."""
        failure = self._native.failure()
        return None if failure is None else EndpointError(**failure)

    def stats(self) -> dict[str, Any]:
        """Counters since the start: those of `Endpoint.stats` that apply; `pull_latency` times whole all-reduces."""
        return self._native.stats()

    def stalled(self) -> tuple[Stall, ...]:
        """What has not moved for a second or more while a caller waited for it; any thread may ask."""
        found = self._native.standstill(1.0)
        return () if found is None else (Stall("sums", found[0], found[1], "no sum or no confirmation comes"),)

    def interrupt(self) -> None:
        """Fail what is pending (kind ``closed``), from any thread: a caller that waits notices within 50 ms or so."""
        self._native.interrupt()

    def close(self, linger: float = 0.25) -> None:
        """Fail what is pending; run the protocol until the switch has confirmed all sums, for `linger` seconds at most.

        Always returns; may be called twice.
        """
        self._native.close(linger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.25 if kind is None else 0.0)


def _exponent(dtype: DataType, exponent: int | None) -> int:
    if dtype == DataType.INT32:
        return 0
    if exponent is None or not -128 <= exponent <= 127:
        raise _argument(
            f"all-reduce of {dtype.name} with exponent {exponent}",
            "floats need the shared exponent E, -128..127, |x| < 2**E",
        )
    return exponent


def _argument(message: str, hint: str) -> EndpointError:
    return EndpointError(message, kind="argument", hint=hint)
