"""What the players' vectors and parameters hold, so that the player that gets them can check them."""

from __future__ import annotations

from collections.abc import Sequence

_HALF = 1 << 31


def value(wid: int, seq: int, lane: int) -> int:
    """What worker `wid` sends in a lane, an int32: different for each worker, number and lane."""
    return _int32((wid + 1) * 1_000_003 + seq * 257 + lane)


def fault(seq: int, lanes: Sequence[int], workers: int) -> str | None:
    """What is wrong with the sum of all workers' vectors `seq`; None when nothing is."""
    for lane, got in enumerate(lanes):
        wanted = _int32(sum(value(wid, seq, lane) for wid in range(workers)))
        if got != wanted:
            return f"sum {seq}, lane {lane}: {got} instead of {wanted}"
    return None


def parameters(seq: int, size: int) -> bytes:
    """`size` bytes of parameters, different for each number and place."""
    return bytes((seq * 131 + place * 7 + (place >> 8)) & 0xFF for place in range(size))


def parameters_fault(seq: int, data: bytes, size: int) -> str | None:
    """What is wrong with the parameters `seq`; None when nothing is."""
    wanted = parameters(seq, size)
    if len(data) != size:
        return f"parameters {seq}: {len(data)} bytes instead of {size}"
    for place, (got, want) in enumerate(zip(data, wanted, strict=True)):
        if got != want:
            return f"parameters {seq}, byte {place}: {got} instead of {want}"
    return None


def _int32(number: int) -> int:
    return (number + _HALF) % (2 * _HALF) - _HALF
