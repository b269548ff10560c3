"""What is asked of the core, checked before it is asked."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from catchment.host.collectives.errors import wrong
from catchment.host.collectives.strided import Strided
from catchment.host.collectives.whole_number import whole
from catchment.host.errors import EndpointError
from catchment.host.given_numbers import as_real
from catchment.host.transport.buffers import ITEM_BYTES, Buffer, bytes_of, lanes_of
from catchment.wire.generated.constants import LANE_BYTES, DataType

ALL_REDUCE, REDUCE, BROADCAST, BARRIER, REDUCE_SCATTER, ALL_GATHER, BESIDE, REFUSED = range(1, 9)
_NAMES: Final = (
    "", "all_reduce", "reduce", "broadcast", "barrier", "reduce_scatter", "all_gather", "beside", "refuse"
)  # fmt: skip
WITHOUT_ARRAYS: Final = (BARRIER, REFUSED)
OPS: Final = {"sum": 0, "mean": 1, "max": 2}
NOTHING: Final = Buffer(None, 0, 0, DataType.BYTES)
_MOST_PRIORITY, _MOST_TAG = (1 << 31) - 1, (1 << 32) - 1
_PRIORITIES = "give a whole number, -(2**31-1)..2**31-1"
_TAGS = "give a whole number, 0..2**32-1"
_ELEMENTS = "give a whole number, 0..2**36-1"
_LONGEST_NS: Final = 1 << 62
"""146 years: the C library may add the time since the machine's start and still has 64 bits."""


class CallOptions(NamedTuple):
    """How one call is carried out, as the C library takes it; `asked` checks what a caller says."""

    priority: int = 0
    timeout_ns: int = 0
    tag: int = 0
    root: int = 0
    step: int = 0
    block: int = 0
    blocks: int = 0
    stride: int = 0

    def at(self, places: Strided) -> CallOptions:
        """The same call with each rank's part at `places`, in bytes."""
        return self._replace(step=places.step, block=places.block, blocks=places.blocks, stride=places.stride)


USUAL: Final = CallOptions()


def asked(priority: int, timeout: float | None, tag: int, root: int = 0) -> CallOptions:
    """The options of a call; see `Communicator.all_reduce`. Those of most calls are made once.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if type(priority) is type(tag) is int:
        if not (priority or tag or root) and timeout is None:
            return USUAL
    else:
        priority = whole("priority", priority, _PRIORITIES)
        tag = whole("tag", tag, _TAGS)
    if abs(priority) > _MOST_PRIORITY:
        raise wrong(f"priority {priority}", _PRIORITIES)
    if not 0 <= tag <= _MOST_TAG:
        raise wrong(f"tag {tag}", _TAGS)
    return CallOptions(priority, 0 if timeout is None else positive_nanoseconds("a timeout of", timeout), tag, root)


def nanoseconds(what: str, seconds: Any) -> int:
    """Seconds as the C library takes them, at least 0; more than 146 years, or infinity, are 146 years.

    Args:
        what: precedes the number in the error.
        seconds: a real number.

    Raises:
        CollectiveError: kind ``argument``: it is NaN, or no number.
    """
    number = as_real(seconds)
    if number is None:
        raise wrong(f"{what} {seconds!r}", "give a number of seconds")
    return _LONGEST_NS if number >= _LONGEST_NS / 1e9 else int(max(number, 0.0) * 1e9)


def positive_nanoseconds(what: str, seconds: Any) -> int:
    """`nanoseconds` of a positive number, at least one.

    Raises:
        CollectiveError: kind ``argument``: it is 0 or less, NaN, or no number.
    """
    taken = nanoseconds(what, seconds)
    if not seconds > 0:
        raise wrong(f"{what} {seconds!r} s", "give a positive number of seconds")
    return max(1, taken)


class Numbers(NamedTuple):
    """What becomes of the values: the reduction, where the exponent comes from, and whether their lanes are packed."""

    op: int = 0
    scaling: int = 0
    exponent: int = 0
    packed: bool = False


def named(kind: int, elements: int, dtype: DataType | None) -> str:
    """What an operation is called; `dtype`: None of one without arrays."""
    return f"{_NAMES[kind]}({'' if dtype is None else _sized(elements, dtype)})"


NOT_SCALED, NEGOTIATED, GIVEN, EXPECTED, WHOLE = range(5)


UNSCALED: Final = Numbers()


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


def item_bytes(array: Any) -> int:
    """Bytes of each element of a buffer."""
    return int(getattr(array, "itemsize", 1))


def placed(places: Strided, item_bytes: int) -> Strided:
    """`places` in bytes, from elements of `item_bytes`.

    Raises:
        CollectiveError: kind ``argument``: it is no `Strided`, blocks are no whole words, or reach too far.
    """
    if not isinstance(places, Strided):
        raise wrong(f"places {places!r:.80}", "give a Strided, or None where the parts follow one another")
    step, block, stride = places.step * item_bytes, places.block * item_bytes, places.stride * item_bytes
    if step % LANE_BYTES or block % LANE_BYTES or stride % LANE_BYTES:
        raise wrong(f"{places} of elements of {item_bytes} bytes", f"give whole words of {LANE_BYTES} bytes")
    if max(step, stride, places.blocks, block * places.blocks) >= 1 << 36:
        raise wrong(f"{places} of elements of {item_bytes} bytes", "an operation has up to 2**36-1 bytes")
    return Strided(step, block, places.blocks, stride)


def parts(places: Strided, array: Buffer, own: Buffer, ranks: int) -> tuple[Buffer, Buffer]:
    """All ranks' parts at `places` of an array, and this rank's part; both count elements of the parts alone.

    Raises:
        CollectiveError: kind ``argument``: they reach beyond the array.
    """
    if places.end(ranks) > array.elements:
        raise wrong(f"{places} for {ranks} ranks in {in_words(array)}", f"it needs {places.end(ranks)} elements")
    if own.address == array.address and own.elements == array.elements:
        own = own._replace(elements=places.part)
    return array._replace(elements=places.part * ranks), own


def in_words(buffer: Buffer) -> str:
    """A buffer in words."""
    return _sized(buffer.elements, buffer.dtype)


def _sized(elements: int, dtype: DataType) -> str:
    if dtype == DataType.BYTES:
        return f"{elements} bytes"
    return f"{elements} x {dtype.name.lower()}, {elements * ITEM_BYTES[dtype]} bytes"


def checked_elements(elements: Any, hint: str = _ELEMENTS) -> int:
    """How many elements a caller gave: those of an operation.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if not 0 <= whole("elements", elements, hint) < 1 << 36:
        raise wrong(f"{elements} elements", hint)
    return int(elements)
