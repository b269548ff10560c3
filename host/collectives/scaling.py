"""How floats become integers: where a vector's exponent E comes from (docs/explanation/protocol.md, "Numbers").

With `packed` they have 16 bits instead of 32, two in a lane, so half of the bytes travel: in jobs with packed lanes,
and the same on all ranks. A vector in which a rank has NaN, an infinity or a number of 2**127 and more is NaN on all of
them; arrays of up to 1 KiB that are gathered stay as they are (docs/explanation/packed-lanes.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.host.collectives.errors import wrong
from catchment.host.collectives.whole_number import whole


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest E that holds all ranks' values, negotiated in the switch; the default.

    Every vector has its own. Those of an operation's first T vectors (T = the stream's slots) are agreed on beside the
    signatures, those of later vectors T vectors ahead. Arrays of up to 1 KiB are gathered and added as doubles instead.
    NaN and infinities give what a sum of floats gives.

    Attributes:
        packed: in packed lanes.

    Raises:
        CollectiveError: kind ``argument``, as for the others: a value is of another type, or outside its range.
    """

    packed: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_packed(self)


@dataclass(frozen=True, slots=True)
class Fixed:
    """E is given, the same on all ranks; |x| > 2**E saturates and is counted.

    A vector in which a rank has NaN, an infinity or a number of 2**126 and more that saturates is NaN on all ranks.

    Attributes:
        exponent: E, -128..127.
        packed: in packed lanes.
    """

    exponent: int
    packed: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_exponent("Fixed.exponent", self.exponent)
        _check_packed(self)


@dataclass(frozen=True, slots=True)
class Delayed:
    """E is expected from the largest magnitudes that all ranks saw in earlier operations of the same name.

    Data of up to T vectors (T = the stream's slots) leave on it at once, which saves a round trip. If a value of any
    rank needs more, or is not finite, they leave again with the E of `Block`, so nothing is ever cut. Longer operations
    are those of `Block`. An operation waits in the call for the previous one of its name.

    Attributes:
        name: of the tensor; its history is kept in the communicator.
        length: how many operations the history holds.
        margin: bits above the largest exponent of the history.
        packed: in packed lanes.
    """

    name: str
    length: int = 16
    margin: int = 1
    packed: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise wrong(f"Delayed.name {self.name!r}", "give the tensor's name, a str")
        for name, number, least in (("length", self.length, 1), ("margin", self.margin, 0)):
            hint = f"give a whole number from {least} on"
            if whole(f"Delayed.{name}", number, hint) < least:
                raise wrong(f"Delayed.{name} {number}", hint)
        _check_packed(self)


@dataclass(frozen=True, slots=True)
class Whole:
    """One E for all vectors of an operation: the smallest that holds all ranks' arrays, negotiated as that of `Block`.

    The bits of the result then depend on the arrays alone, not on the lanes of the switch program, on the slots, or on
    how an array is split. Only where a rank has NaN, an infinity or a number of 2**127 and more, what else lies in
    its vector is rounded otherwise. Each rank reads its array once more, before the first vector leaves; small
    elements beside large ones keep fewer bits than with `Block`.

    Attributes:
        least: E is at least this, -128..127: what this rank's larger array needs, of which it sums a part.
        packed: in packed lanes.
    """

    least: int = -128
    packed: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        _check_exponent("Whole.least", self.least)
        _check_packed(self)


Scaling = Block | Fixed | Delayed | Whole


def _check_exponent(what: str, exponent: int) -> None:
    if not -128 <= whole(what, exponent, "give -128..127") <= 127:
        raise wrong(f"{what} {exponent}", "give -128..127")


def _check_packed(scaling: Scaling) -> None:
    if not isinstance(scaling.packed, bool):
        raise wrong(f"{type(scaling).__name__}.packed {scaling.packed!r}", "give True or False")
