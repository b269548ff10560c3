"""Results that lie in the memory of what is read: where they may, and the rest refused before anything is sent.

Anywhere else a result would be written over what this rank has yet to send, or to send again.
"""

from __future__ import annotations

from catchment.host.collectives.calls import in_words
from catchment.host.collectives.errors import CollectiveError, wrong
from catchment.host.collectives.strided import Strided
from catchment.host.transport.buffers import ITEM_BYTES, Buffer


def check_sum(source: Buffer, target: Buffer) -> None:
    """Refuse a sum's result in a part of its source; both are as long.

    Raises:
        CollectiveError: kind ``argument``.
    """
    distance = target.address - source.address
    if distance and abs(distance) < source.elements * ITEM_BYTES[source.dtype]:
        raise _overlaps("a sum", source, target)


def check_part(call: str, read: Buffer, written: Buffer, rank: int, ranks: int) -> None:
    """Refuse a rank's part in the memory of all ranks' parts, unless it is where this rank's own is.

    Args:
        call: for the error.
        read, written: one is `ranks` times as long as the other.
        rank, ranks: which part is this rank's own, and how many there are.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if read.elements < written.elements:
        whole, part = written, read
    else:
        whole, part = read, written
    size = part.elements * ITEM_BYTES[part.dtype]
    distance = part.address - whole.address
    if -size < distance < ranks * size and distance != rank * size:
        raise _overlaps(call, read, written)


def check_places(call: str, arrays: tuple[Buffer, Buffer], part: Buffer, places: Strided, own: tuple[int, int]) -> None:
    """Refuse a rank's part in the blocks of `places`, unless it is all of that array, or where its own part is.

    Its own part is in one piece only where that part's blocks follow one another.

    Args:
        call: for the error.
        arrays: the one that is read and the one that is written; one of them has the parts.
        part: the other one.
        places: of the parts, in bytes.
        own: this rank, and how many there are.

    Raises:
        CollectiveError: kind ``argument``.
    """
    whole = arrays[0] if part is arrays[1] else arrays[1]
    distance = part.address - whole.address
    if not distance and part.elements == whole.elements:
        return
    rank, ranks = own
    size = places.part
    if not size:
        return
    in_one_piece = places.blocks == 1 or places.stride == places.block
    if not -size < distance < places.end(ranks) or (in_one_piece and distance == rank * places.step):
        return
    if any(_meets(places, distance - one * places.step, size) for one in range(ranks)):
        raise _overlaps(call, *arrays)


def _meets(places: Strided, first: int, size: int) -> bool:
    """Whether `size` bytes from `first` on have some of a part's blocks, the first of which begins at 0."""
    number = (
        0 if places.blocks == 1 else max(0, (first - places.block) // places.stride + 1)
    )  # the first that ends later
    return (
        number < places.blocks
        and first < number * places.stride + places.block
        and number * places.stride < first + size
    )


def _overlaps(call: str, read: Buffer, written: Buffer) -> CollectiveError:
    return wrong(
        f"{call} of {in_words(read)} into {in_words(written)} of the same memory",
        "give the result memory of its own, or this rank's part of the array",
    )
