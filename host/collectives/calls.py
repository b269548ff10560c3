"""What is asked of the core, checked before it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.library import Call
from catchment.host.errors import EndpointError
from catchment.host.transport.buffers import ITEM_BYTES, Buffer, bytes_of, lanes_of
from catchment.wire.generated.constants import DataType

ALL_REDUCE, REDUCE, BROADCAST, BARRIER, REDUCE_SCATTER, ALL_GATHER, BESIDE, REFUSED = range(1, 9)
_NAMES: Final = (
    "", "all_reduce", "reduce", "broadcast", "barrier", "reduce_scatter", "all_gather", "beside", "refuse"
)  # fmt: skip
OPS: Final = {"sum": 0, "mean": 1, "max": 2}
NOTHING: Final = Buffer(None, 0, 0, DataType.BYTES)
_MOST_PRIORITY = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How one call is carried out, whatever it does; see `Communicator.all_reduce`. `timeout` is in seconds."""

    priority: int
    timeout: float | None
    tag: int
    root: int = 0

    def __post_init__(self) -> None:
        if abs(self.priority) > _MOST_PRIORITY or not 0 <= self.tag < 1 << 32:
            raise wrong(f"priority {self.priority}, tag {self.tag}", "a priority has 32 bits, a tag is 0..2**32-1")
        if self.timeout is not None and not self.timeout > 0:
            raise wrong(f"a timeout of {self.timeout} s", "give a positive number of seconds")


@dataclass(frozen=True, slots=True)
class Numbers:
    """What becomes of the values: the reduction, and where the exponent comes from."""

    op: int = 0
    scaling: int = 0
    exponent: int = 0


NOT_SCALED, NEGOTIATED, GIVEN, EXPECTED, WHOLE = range(5)


@dataclass(frozen=True, slots=True)
class Operation:
    """One call."""

    kind: int
    source: Buffer
    target: Buffer
    options: CallOptions
    numbers: Numbers = Numbers()

    def call(self) -> Call:
        """The call as the C library takes it."""
        options, numbers = self.options, self.numbers
        return Call(
            kind=self.kind,
            reduction=numbers.op,
            type=int(self.source.dtype),
            scaling=numbers.scaling,
            exponent=numbers.exponent,
            root=options.root,
            priority=options.priority,
            tag=options.tag,
            elements=self.source.elements,
            source=self.source.address,
            target=self.target.address,
            timeout_ns=0 if options.timeout is None else int(options.timeout * 1e9),
        )

    def __str__(self) -> str:
        return f"{_NAMES[self.kind]}({'' if self.source is NOTHING else in_words(self.source)})"


def elements(array: Any, *, writable: bool) -> Buffer:
    """An array of numbers, perhaps empty.

    Raises:
        CollectiveError: kind ``argument``.
    """
    try:
        return lanes_of(array, writable=writable, empty=True)
    except EndpointError as error:
        raise wrong(error.message, error.hint) from error


def raw(array: Any, *, writable: bool) -> Buffer:
    """Any contiguous buffer as bytes, perhaps empty.

    Raises:
        CollectiveError: kind ``argument``.
    """
    try:
        return bytes_of(array, writable=writable, empty=True)
    except EndpointError as error:
        raise wrong(error.message, error.hint) from error


def in_words(buffer: Buffer) -> str:
    """A buffer in words."""
    if buffer.dtype == DataType.BYTES:
        return f"{buffer.elements} bytes"
    return f"{buffer.elements} x {buffer.dtype.name.lower()}, {buffer.elements * ITEM_BYTES[buffer.dtype]} bytes"


def wrong(what: str, hint: str) -> CollectiveError:
    """An argument that is refused."""
    return CollectiveError(what, kind="argument", hint=hint)
