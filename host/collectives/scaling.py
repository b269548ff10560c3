"""How floats become integers: where the shared exponent E of each vector comes from (docs/protocol.md, "Numbers")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """The smallest E that holds all ranks' values, negotiated in the switch; the default.

    The first T vectors of an operation (T = the stream's slots) share one E, found with one more round trip; every
    later vector has its own, which rides in `next_exp` T vectors ahead.
    """


@dataclass(frozen=True, slots=True)
class Fixed:
    """E is given, the same on all ranks; |x| > 2**E saturates and is counted.

    Attributes:
        exponent: E, -128..127.
    """

    exponent: int


@dataclass(frozen=True, slots=True)
class Delayed:
    """E comes from the largest magnitudes that all ranks saw in earlier operations of the same name.

    The first operation of a name negotiates (`Block`); the next ones save its round trip.  What grows beyond E
    saturates, is counted, and raises the next E.  An operation waits in the call for the previous one of its name.

    Attributes:
        name: of the tensor; its history is kept in the communicator.
        length: how many operations the history holds.
        margin: bits above the largest exponent of the history.
    """

    name: str
    length: int = 16
    margin: int = 1


Scaling = Block | Fixed | Delayed
