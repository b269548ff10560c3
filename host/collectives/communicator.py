"""The ranks of a job and what they do together."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from functools import cache
from types import TracebackType
from typing import Any, Final, Self, cast

from catchment.host import _collectives
from catchment.host.collectives import apart, calls
from catchment.host.collectives.calls import UNSCALED, USUAL, CallOptions, Numbers, in_words
from catchment.host.collectives.coalesced import Coalesced
from catchment.host.collectives.errors import CollectiveError, wrong
from catchment.host.collectives.history import History
from catchment.host.collectives.library import Config, Result, Stats, library
from catchment.host.collectives.opening import REASON_BYTES, Timing, config_of, not_opened
from catchment.host.collectives.ports import chosen_path
from catchment.host.collectives.rail_parts import chosen_rails, names_rails
from catchment.host.collectives.scaling import Block, Delayed, Fixed, Scaling, Whole
from catchment.host.collectives.strided import Strided
from catchment.host.collectives.whole_number import whole
from catchment.host.collectives.work import Work
from catchment.host.errors import EndpointError
from catchment.host.membership.description import Description
from catchment.host.transport.addresses import Address
from catchment.host.transport.buffers import ITEM_BYTES, Buffer
from catchment.host.transport.stream import Stream
from catchment.wire.generated.constants import DataType

ABSENT: Final = 1.5
"""Seconds that a switch may be gone or silent before pending operations fail, unless a caller says otherwise."""

SPIN: Final = 1e-3
"""Seconds that a waiting thread looks for frames before it sleeps, unless a caller says otherwise: as ranks are often
apart, and some ten times what being put to sleep and woken takes."""

_TERMS: Final = "give a whole number, 0..2**64-1"


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
            CATCHMENT_SHM_PORT names (``{rank}`` in it is replaced), if there is one, then the one announced, else UDP.
        announced: ``shm:PATH`` where the control plane says that the switch shares memory with this host.
        timeout: seconds without any progress of a pending operation after which it fails.
        scaling: of operations that do not say.
        window: how many vectors may be in flight; the stream's slots unless given.
        spin: seconds that a waiting thread looks for frames before it sleeps.
        absent: seconds that the switch may be gone (shared memory), or answer nothing (UDP), while operations are
            pending; give more where it may be started again. None: as long as their timeout.
        switch_name: of the switch, for messages.
        place: worker index that frames say, as the switch's table `tags` has it, where that is not the rank: on a host
            that several ranks share, the host's in the job.

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
        announced: str = "",
        timeout: float = 10.0,
        scaling: Scaling = Block(),  # noqa: B008  frozen
        window: int | None = None,
        spin: float = SPIN,
        absent: float | None = ABSENT,
        switch_name: str = "",
        place: int | None = None,
    ) -> None:
        check_scaling(scaling)
        config = config_of(
            stream,
            rank=rank,
            local=local,
            switch=switch,
            path=chosen_path(port, rank, announced),
            timing=Timing(timeout, spin, absent),
            window=window,
            switch_name=switch_name,
            place=place,
        )
        reason = ctypes.create_string_buffer(REASON_BYTES)
        handle = library().catchment_group_open(ctypes.byref(config), reason, len(reason))
        if not handle:
            raise not_opened(config, reason)
        self._take(handle, stream, config, scaling)

    def _take(self, handle: int, stream: Stream, config: Config, scaling: Scaling) -> None:
        self._stream = stream
        self._rank = int(config.rank)
        self._timeout: float = config.timeout_ns / 1e9
        self._scaling = scaling
        self._usual: dict[str, Numbers] = {}  # of sums and means of floats that do not say how
        self._path: bytes | None = config.shm_path
        self._library = library()
        self._histories: dict[str, History] = {}
        self._handle = handle
        self._operations = _collectives.Operations(handle, Work)
        self._local = (config.local_ip.decode(), int(self._library.catchment_group_port(handle)))

    @classmethod
    def of_job(cls, description: Mapping[str, Any], **options: Any) -> Self:
        """Make a rank from `JobPlan.describe` of a member, or its JSON; `options` as for the constructor.

        Where the job is on several rails this is a `RailSet`, which `rails` and `policy` are for.

        Raises:
            CollectiveError: as the constructor; kind ``argument`` where it is no such description.
        """
        rails, policy = options.pop("rails", ()), options.pop("policy", None)
        try:
            on_rails = names_rails(description.get("parts", {}))
        except (AttributeError, TypeError) as error:
            raise no_member(error) from None
        if on_rails:
            from catchment.host.collectives.rail_set import RailSet  # noqa: PLC0415  which is a Communicator

            chosen = {} if policy is None else {"policy": policy}
            return cast("Self", RailSet.of_job(description, rails=rails, **chosen, **options))
        if names := chosen_rails(rails):
            raise wrong(f"rails {', '.join(names)}", f"job {description.get('job', '(no name)')} is on one rail")
        try:
            stream = Stream(**description["sums"])
            rank, place = description["wid"], description.get("place")
            announced, name = (str(description.get(key, "")) for key in ("port", "switch_name"))
            name.encode()
            ends = {"local": tuple(description["local"]), "switch": tuple(description["switch"])}
        except (LookupError, TypeError, ValueError, EndpointError) as error:
            raise no_member(error) from None
        return cls(stream, rank=rank, announced=announced, switch_name=name, place=place, **{**ends, **options})

    @classmethod
    def of_description(cls, description: Description, **options: Any) -> Self:
        """Make a rank from what the controller tells a member (`host.membership`); `options` as for the constructor."""
        if description.kind != "allreduce":
            raise wrong(f"a job of kind {description.kind}", "collectives need a job of kind allreduce")
        return cls(
            description.streams["sums"],
            rank=description.wid,
            announced=description.port,
            switch_name=description.switch_name,
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

    @property
    def timeout(self) -> float:
        """Seconds without any progress after which a pending operation fails, unless its call says otherwise."""
        return self._timeout

    @property
    def port(self) -> str:
        """The way to the switch: ``udp`` or ``shm:PATH``."""
        return "udp" if self._path is None else f"shm:{self._path.decode()}"

    @property
    def handle(self) -> int:
        """The `catchment_group` of the C library, while this object lives."""
        return int(self._handle)

    @property
    def local(self) -> Address:
        """The address that this rank is bound to."""
        return self._local

    # ---- keys, where they follow one another (`Stream.term_bits`)

    @property
    def key_due(self) -> int:
        """The term that all ranks have come to, once the key of the next one is due; 0 until then."""
        return int(self._library.catchment_group_key_due(self._handle))

    def take_key(self, term: int, key: str) -> bool:
        """Take the key of a term, which all switches of the job have by now; False where it is not the next one's.

        Raises:
            CollectiveError: kind ``argument``: it is no key.
        """
        if not isinstance(key, str) or not re.fullmatch("[0-9a-fA-F]{32}", key):  # a secret, which is not shown
            raise wrong("a key that is none", "give 32 hexadecimal digits")
        if not 0 <= whole("the key of term", term, _TERMS) < 1 << 64:
            raise wrong(f"the key of term {term}", _TERMS)
        return bool(self._library.catchment_group_take_key(self._handle, term, bytes.fromhex(key)))

    # ---- operations

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
            out: where the result goes, of its type and length, with none of its elements; `array` itself unless given.
            op: ``sum``; ``mean`` of floats: the sum as fp32, divided by the size, rounded to the type; ``max``.
            scaling: of sums and means of floats; the communicator's unless given.
            priority: a larger one overtakes operations that are queued or under way; the same on all ranks.
            timeout: seconds, in place of the communicator's.
            tag: 0..2**32-1, must agree on all ranks, so that operations of equal shape cannot be mixed up; compared
                where the program has three lanes for each rank.

        Raises:
            CollectiveError: kind ``argument``; what happens later is raised by `Work.wait`.
        """
        arrays = self._in_and_out(array, out)
        return self._reduce(calls.ALL_REDUCE, arrays, calls.asked(priority, timeout, tag), op, scaling)

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
        """Add up as `all_reduce` does, but only `root` gets the result; the others' arrays stay as they are."""
        root = self._root(root)
        options = calls.asked(priority, timeout, tag, root)
        if self._rank == root:
            return self._reduce(calls.REDUCE, self._in_and_out(array, out), options, op, scaling)
        kept = calls.elements(array, writable=False)
        return self._reduce(calls.REDUCE, (kept, kept), options, op, scaling)

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
        places: Strided | None = None,
    ) -> Work:
        """Rank r gets the r-th part of the result; `array` has size times as many elements as `out`.

        `out` may be this rank's own part of `array`.  With `places` the parts lie there in `array`, and `out` is as
        long as one of them, or `array` itself: the result then takes the place of this rank's part.  What else has
        elements of both is refused.
        """
        source, target = calls.elements(array, writable=False), calls.elements(out, writable=True)
        options = calls.asked(priority, timeout, tag)
        if places is not None:
            in_bytes = calls.placed(places, ITEM_BYTES[source.dtype])
            options = options.at(in_bytes)
            parts, own = calls.parts(places, source, target, self.size)
        else:
            parts, own = source, target
        if source.dtype != target.dtype or parts.elements != self.size * own.elements:
            raise wrong(
                f"reduce_scatter of {in_words(source)} into {in_words(target)}",
                f"give the same type, and {self.size} times as many elements as out has",
            )
        if places is None:
            apart.check_part("reduce_scatter", source, target, self._rank, self.size)
        else:
            apart.check_places("reduce_scatter", (source, target), target, in_bytes, (self._rank, self.size))
        return self._reduce(calls.REDUCE_SCATTER, (parts, own), options, op, scaling)

    def broadcast(
        self, array: Any, root: int, *, priority: int = 0, timeout: float | None = None, tag: int = 0
    ) -> Work:
        """Every rank gets `root`'s array, in place; any contiguous buffer, compared by bytes."""
        root = self._root(root)
        buffer = calls.raw(array, writable=self._rank != root)
        options = calls.asked(priority, timeout, tag, root)
        return self._start(calls.BROADCAST, buffer, buffer, options)

    def barrier(self, *, priority: int = 0, timeout: float | None = None, tag: int = 0) -> Work:
        """Done when every rank has called it."""
        options = calls.asked(priority, timeout, tag)
        return self._start(calls.BARRIER, calls.NOTHING, calls.NOTHING, options)

    def all_gather(
        self,
        array: Any,
        out: Any,
        *,
        priority: int = 0,
        timeout: float | None = None,
        tag: int = 0,
        places: Strided | None = None,
    ) -> Work:
        """Every rank gets all ranks' arrays, one after the other; `out` has size times as many bytes as `array`.

        `array` may be this rank's own part of `out`.  With `places` the parts get there in `out`, and `array` is as
        long as one of them, or `out` itself: this rank's part then is in its place already.  What else has elements of
        both is refused.
        """
        source, target = calls.raw(array, writable=False), calls.raw(out, writable=True)
        options = calls.asked(priority, timeout, tag)
        if places is not None:
            in_bytes = calls.placed(places, calls.item_bytes(out))
            options = options.at(in_bytes)
            parts, own = calls.parts(in_bytes, target, source, self.size)
        else:
            parts, own = target, source
        if parts.elements != self.size * own.elements:
            raise wrong(
                f"all_gather of {in_words(own)} into {in_words(parts)}",
                f"out has {self.size} times the bytes of array",
            )
        if places is None:
            apart.check_part("all_gather", source, target, self._rank, self.size)
        else:
            apart.check_places("all_gather", (source, target), source, in_bytes, (self._rank, self.size))
        return self._start(calls.ALL_GATHER, own, parts, options)

    def coalesced(
        self,
        *,
        op: str = "sum",
        scaling: Scaling | None = None,
        priority: int = 0,
        timeout: float | None = None,
        tag: int = 0,
    ) -> Coalesced:
        """Make one operation of several calls of all_reduce, reduce_scatter, or all_gather, on arrays of one type.

        `op` and `scaling` are for sums; all ranks add the same calls.
        """
        calls.asked(priority, timeout, tag)  # refused here, not where the block ends
        return Coalesced(self, {"op": op, "scaling": scaling}, {"priority": priority, "timeout": timeout, "tag": tag})

    def beside(self, elements: int, *, timeout: float | None = None, tag: int = 0) -> Work:
        """Done when every rank has called it with as many elements and the same tag: for what goes another way.

        Whoever calls an operation of the switch instead fails, and so do all others, before anybody sends anything.
        """
        counted = Buffer(None, 0, calls.checked_elements(elements, "give 0..2**36-1"), DataType.BYTES)
        return self._start(calls.BESIDE, counted, calls.NOTHING, calls.asked(0, timeout, tag))

    def refuse(self) -> Work:
        """Take part in what the others call and this rank cannot: it fails on every rank that called it."""
        return self._start(calls.REFUSED, calls.NOTHING, calls.NOTHING, USUAL)

    # ---- state

    @property
    def error(self) -> CollectiveError | None:
        """The error that ended this communicator, if one did."""
        result = Result()
        self._library.catchment_group_failure(self._handle, ctypes.byref(result))
        return result.error("")

    @property
    def forked(self) -> bool:
        """Whether this process was forked after the communicator was made."""
        return bool(self._library.catchment_group_forked(self._handle))

    def check_process(self) -> None:
        """Refuse a process that was forked after this communicator was made: it has neither its threads nor its port.

        Raises:
            CollectiveError: kind ``forked``.
        """
        if self.forked:
            raise self.error or AssertionError

    def stats(self) -> dict[str, int]:
        """Counters since the start; see docs/reference/collectives.md."""
        stats = Stats()
        self._library.catchment_group_get_stats(self._handle, ctypes.byref(stats))
        return {name: int(getattr(stats, name)) for name, *_ in Stats._fields_}

    def close(self, linger: float = 0.25) -> None:
        """Fail what is pending and give the port back; serves the others until all is received, `linger` s at most.

        Those who wait for what this rank has not called are told that it has left; a `linger` of 0 tells them nothing.
        """
        self._library.catchment_group_close(self._handle, calls.nanoseconds("a linger of", linger))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()  # also after an error: the others wait for what this rank does not call any more

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.catchment_group_free(self._handle)

    # ---- how

    def _in_and_out(self, array: Any, out: Any) -> tuple[Buffer, Buffer]:
        source = calls.elements(array, writable=out is None)
        if out is None:
            return source, source
        target = calls.elements(out, writable=True)
        if (target.dtype, target.elements) != (source.dtype, source.elements):
            raise wrong(f"{in_words(source)} into {in_words(target)}", "give an out of the same type and length")
        apart.check_sum(source, target)
        return source, target

    def _root(self, root: int) -> int:
        root = whole("root", root, "give 0..size-1")
        if not 0 <= root < self.size:
            raise wrong(f"root {root} of {self.size} ranks", "give 0..size-1")
        return root

    def _reduce(
        self, kind: int, arrays: tuple[Buffer, Buffer], options: CallOptions, op: str, scaling: Scaling | None
    ) -> Work:
        source, target = arrays
        if not isinstance(op, str):
            raise wrong(f"op {op!r}", f"give one of {', '.join(calls.OPS)}")
        floats = source.dtype is not DataType.INT32
        usual = self._usual.get(op) if floats and scaling is None else None
        if usual is not None:
            return self._start(kind, source, target, options, usual)
        if op not in calls.OPS:
            raise wrong(f"op {op!r}", f"give one of {', '.join(calls.OPS)}")
        if op == "mean" and not floats:
            raise wrong("a mean of int32", "take the sum, and divide as you wish")
        code = calls.OPS[op]
        if not floats or op == "max":
            return self._start(kind, source, target, options, Numbers(code))
        chosen = self._scaling if scaling is None else scaling
        check_scaling(chosen)
        if chosen.packed and not self._stream.packed:
            raise wrong("packed lanes in a job that has none", "make the job with --packed, or scale without packed")
        if isinstance(chosen, Delayed):
            history = self._histories.setdefault(chosen.name, History())
            numbers = _numbers(code, history.exponent(chosen), calls.EXPECTED, chosen.packed)
            work = self._start(kind, source, target, options, numbers)
            history.started(work)
            return work
        if isinstance(chosen, Whole):
            numbers = _numbers(code, chosen.least, calls.WHOLE, chosen.packed)
        else:
            exponent = chosen.exponent if isinstance(chosen, Fixed) else None
            numbers = _numbers(code, exponent, calls.GIVEN, chosen.packed)
        if chosen is self._scaling:
            self._usual[op] = numbers
        return self._start(kind, source, target, options, numbers)

    def _start(
        self, kind: int, source: Buffer, target: Buffer, options: CallOptions, numbers: Numbers = UNSCALED
    ) -> Work:
        work = self._operations.start(kind, source, target, options, numbers)
        if work is None:
            raise self.error or AssertionError
        return work


def check_scaling(scaling: Scaling) -> None:
    """Refuse what is no scaling.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if not isinstance(scaling, Scaling):
        raise wrong(f"scaling {scaling!r}", "give Block, Fixed, Delayed or Whole")


def no_member(error: Exception) -> CollectiveError:
    """Say of a description, of which something cannot be read, that it is none of a member."""
    return wrong(
        f"a description that is none of a member ({type(error).__name__}: {error})",
        "take one of `members` from `catchment job show --json`",
    )


@cache
def _numbers(op: int, exponent: int | None, scaling: int, packed: bool) -> Numbers:
    """Choose `scaling` with its exponent, or negotiate without one."""
    if exponent is None:
        return Numbers(op, calls.NEGOTIATED, packed=packed)
    return Numbers(op, scaling, exponent, packed)
