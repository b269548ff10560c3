"""All-reduce of a few vectors at the lowest latency (P4SGD, section III-C and Algorithm 3, corrected)."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, final

from catchment.host.transport.addresses import Address, cannot_open
from catchment.host.transport.buffers import checked_exponent, lanes_of
from catchment.host.transport.connection import Connection, argument_error, member_options
from catchment.host.transport.endpoint import Stall
from catchment.host.transport.outcome import Outcome

if TYPE_CHECKING:
    from catchment.host import _native
    from catchment.host.transport.stream import Stream


@final
class Reduction(Outcome["_native.Reduction"]):
    """The all-reduce of one array, to be run as often as wanted; `AllReducer.prepare` makes it.

    The array must stay as it is between `start` and the end of `wait`.
    """

    __slots__ = ()

    def __init__(self, native: _native.Reduction) -> None:
        self._native = native

    def run(self) -> None:
        """Add the array up over all workers; the sum is in place on return.

        The caller's thread runs the protocol, without the GIL; a signal handler (Ctrl-C) gets its turn.

        Raises:
            EndpointError: it failed.
        """
        if not self._native.run():
            self.raise_failure()

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
        self.raise_failure()


@final
class AllReducer(Connection["_native.AllReducer"]):
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

        options = member_options(
            workers=stream.workers, wid=wid, local=local, switch=switch, port=port, timeout=timeout
        )
        if stream.packed:
            raise argument_error("packed lanes in a job on p4sgd.p4", "give a Stream without packed")
        if not spin >= 0:
            raise argument_error(f"polling for {spin} s", "give seconds, 0 to sleep at once")
        if window is None:
            window = min(stream.slots, 64)
        if not 1 <= window <= stream.slots:
            raise argument_error(f"a window of {window} vectors", "give 1..slots")
        self._key_frames = stream.key_frames if stream.key else None
        options |= {"stream": asdict(stream), "window": window, "spin": float(spin)}
        try:
            self._native = _native.AllReducer(options)
        except (OSError, _native.AttachError) as error:
            raise cannot_open(error, local=local, switch=switch, path=options["port"]) from error

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
            raise argument_error(
                f"{source.elements} x {source.dtype.name} into {target.elements} x {target.dtype.name}",
                "out must be like array",
            )
        native = _native.Reduction(
            self._native,
            source.address,
            target.address,
            source.elements,
            int(source.dtype),
            checked_exponent("all-reduce", source.dtype, exponent),
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

    def stalled(self) -> tuple[Stall, ...]:
        """What has not moved for a second or more while a caller waited for it; any thread may ask."""
        found = self._native.standstill(1.0)
        return () if found is None else (Stall("sums", found[0], found[1], "no sum or no confirmation comes"),)

    def interrupt(self) -> None:
        """Fail what is pending (kind ``closed``), from any thread: a caller that waits notices within 50 ms or so."""
        self._native.interrupt()
