"""The ranks of a job and what they do together."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, final

from host.addresses import Address
from host.collectives.errors import CollectiveError
from host.collectives.scaling import Block, Fixed, Scaling
from host.collectives.work import Work
from host.endpoint import Endpoint
from host.membership.description import Description
from host.stream import Stream


@final
class Communicator:
    """One rank of an all-reduce job.

    Every rank calls the same operations in the same order; calls return at once with a `Work`.  All methods may be
    called from any thread; the order of operations is the order of the calls.

    Args:
        stream: of the job, the same on all ranks.
        rank: this rank, the worker index of the job.
        local: own address, port 0 for any.
        switch: the switch's address.
        port: ``auto``, ``udp`` or ``shm:PATH``.  ``auto`` takes the shared-memory port that the environment variable
            CATCHMENT_SHM_PORT names (``{rank}`` in it is replaced), if there is one, else UDP.
        timeout: seconds without any progress of a pending operation after which it fails.
        scaling: of operations that do not say.
        window: how many vectors may be in flight; the stream's slots unless given.

    Raises:
        CollectiveError: kind ``argument`` or ``system``.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        rank: int,
        local: Address,
        switch: Address,
        port: str = "auto",
        timeout: float = 10.0,
        scaling: Scaling = Block(),  # noqa: B008  frozen
        window: int | None = None,
    ) -> None:
        self._stream = stream
        self._rank = rank
        self._scaling = scaling
        self._endpoint = Endpoint.peer(
            stream=stream,
            wid=rank,
            local=local,
            switch=switch,
            port=port if port.startswith("shm:") else None,
            timeout=timeout,
            window=window,
        )

    @classmethod
    def of_job(cls, told: Mapping[str, Any], **options: Any) -> Self:
        """From what a plan tells a member (`JobPlan.describe`, or its JSON); `options` as for the constructor."""
        return cls(
            Stream(**told["sums"]),
            rank=told["wid"],
            **{"local": tuple(told["local"]), "switch": tuple(told["switch"]), **options},
        )

    @classmethod
    def of_description(cls, description: Description, **options: Any) -> Self:
        """From what the controller tells a member (`host.membership`); `options` as for the constructor."""
        (stream,) = description.streams.values()
        return cls(
            stream,
            rank=description.wid,
            **{"local": description.local, "switch": description.switch, **options},
        )

    @property
    def rank(self) -> int:
        """This rank."""
        return self._rank

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self._stream.workers

    @property
    def stream(self) -> Stream:
        """The stream of the job."""
        return self._stream

    def all_reduce(
        self,
        array: Any,
        out: Any = None,
        *,
        op: str = "sum",
        scaling: Scaling | None = None,
        priority: int = 0,
        timeout: float | None = None,
        tag: int = 0,
    ) -> Work:
        """Every rank gets the element-wise result over all ranks.

        Args:
            array: fp32, fp16, bf16 or int32, contiguous, any length, the same on all ranks.
            out: where the result goes, of the same type and length; `array` itself unless given.
            op: ``sum``, ``mean`` (floats: the sum, divided by the size and rounded once more), ``max``.
            scaling: of floats; the communicator's unless given.
            priority: a larger one overtakes operations that are still queued or under way.
            timeout: seconds, in place of the communicator's.
            tag: a number that must agree on all ranks, so that operations of equal shape cannot be mixed up.

        Raises:
            CollectiveError: kind ``argument``; what happens later is raised by `Work.wait`.
        """
        if op != "sum":
            raise CollectiveError(f"op {op!r}", kind="unsupported")
        chosen = scaling or self._scaling
        exponent = chosen.exponent if isinstance(chosen, Fixed) else 8
        target = array if out is None else out
        operation = f"all_reduce({op})"
        pull = self._endpoint.pull(target)
        push = self._endpoint.push(array.clone() if hasattr(array, "clone") else array.copy(), exponent)
        return Work(operation, (push, pull))

    def reduce(
        self,
        array: Any,
        root: int,
        out: Any = None,
        *,
        op: str = "sum",
        scaling: Scaling | None = None,
        priority: int = 0,
        timeout: float | None = None,
        tag: int = 0,
    ) -> Work:
        """As `all_reduce`, but only `root` gets the result; the others' arrays stay as they are."""
        raise NotImplementedError

    def broadcast(
        self, array: Any, root: int, *, priority: int = 0, timeout: float | None = None, tag: int = 0
    ) -> Work:
        """Every rank gets `root`'s array, in place; any contiguous buffer, compared by bytes."""
        raise NotImplementedError

    def barrier(self, *, priority: int = 0, timeout: float | None = None, tag: int = 0) -> Work:
        """Done when every rank has called it."""
        raise NotImplementedError

    def reduce_scatter(
        self,
        array: Any,
        out: Any,
        *,
        op: str = "sum",
        scaling: Scaling | None = None,
        priority: int = 0,
        timeout: float | None = None,
        tag: int = 0,
    ) -> Work:
        """Rank r gets the r-th part of the result; `array` has size times as many elements as `out`."""
        raise NotImplementedError

    def all_gather(
        self, array: Any, out: Any, *, priority: int = 0, timeout: float | None = None, tag: int = 0
    ) -> Work:
        """Every rank gets all ranks' arrays, one after the other; `out` has size times as many bytes as `array`.

        `array` may be this rank's own part of `out`.
        """
        raise NotImplementedError

    @property
    def error(self) -> CollectiveError | None:
        """The error that ended this communicator, if one did."""
        return None

    def stats(self) -> dict[str, Any]:
        """Counters since the start; see docs/collectives.md."""
        return self._endpoint.stats()

    def close(self, linger: float = 0.25) -> None:
        """Fail what is pending and stop; answers late retransmissions of the others for `linger` seconds at most."""
        self._endpoint.close(linger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(0.25 if kind is None else 0.0)
