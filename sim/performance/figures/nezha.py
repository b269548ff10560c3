"""Nezha: what its Table I and Equations 1 to 8 (as docs of the rails reconstruct them) give."""

from __future__ import annotations

from catchment.sim.performance.figures.claim import Claim, Source

_MIB = 1 << 20
SHARP = {1 << 10: 9.0, 8 * _MIB: 22_140.0, 64 * _MIB: 181_484.0}
TCP = {1 << 10: 982.0, 8 * _MIB: 37_137.0, 64 * _MIB: 316_323.0}
"""Table I: us of an all-reduce on one network alone, by bytes."""
SPLIT = {8 * _MIB: 21_265.0, 64 * _MIB: 178_373.0}
"""Table I: us with half of the data on each."""
_CONTENTION = 0.12
_TIMES = "the times of each network alone"


def ideal_gain(size: int) -> float:
    """How much faster than the faster network alone both are, ending together: 1 + t1/t2."""
    return 1 + SHARP[size] / TCP[size]


def half_each(size: int, contention: float) -> float:
    """us with half of the data on each network, each slower by `contention` for the other.

    The slower one decides; half of its data take half of what is proportional to them.
    """
    start, whole = TCP[1 << 10], TCP[size]
    return (start + (whole - start) / 2) * (1 + contention)


def volume(workers: int, gigabytes: float) -> float:
    """Equation 1: what a worker sends in a ring, GB."""
    return 2 * (workers - 1) / workers * gigabytes


def split_from(sharp_rate: float) -> float:
    """Equation 6: the size from which both are faster than the first alone, KB: B1 (L2 - L1); `sharp_rate`: B/us."""
    return sharp_rate * (TCP[1 << 10] - SHARP[1 << 10]) / 1024


def claims() -> list[Claim]:
    """Equations and Table I."""
    rate = (8 * _MIB - 1024) / (SHARP[8 * _MIB] - SHARP[1 << 10])
    return [
        Claim("Nezha", "Equation 1", "GPT-2 with 1.5 billion parameters, 16 workers, GB", 11.25, volume(16, 6.0), 0.0,
              Source.FORMULA),
        Claim("Nezha", "Table I", "ideal gain of both over SHARP, 8 MB", 1.60, ideal_gain(8 * _MIB), 0.005,
              Source.FORMULA, _TIMES),
        Claim("Nezha", "Table I", "ideal gain of both over SHARP, 64 MB", 1.57, ideal_gain(64 * _MIB), 0.005,
              Source.FORMULA, _TIMES),
        Claim("Nezha", "Table I", "half on each, 8 MB, us", SPLIT[8 * _MIB], half_each(8 * _MIB, _CONTENTION), 0.03,
              Source.FORMULA, f"{_TIMES}; contention of 12 %"),
        Claim("Nezha", "Table I", "half on each, 64 MB, us", SPLIT[64 * _MIB], half_each(64 * _MIB, _CONTENTION), 0.03,
              Source.FORMULA, f"{_TIMES}; contention of 12 %"),
        Claim("Nezha", "section 5.2.2", "size from which two networks are used, KB", 256.0, split_from(rate), 1.0,
              Source.FORMULA, _TIMES, "the paper brackets it: 128 KB on one, 512 KB on both; an octave is allowed"),
    ]  # fmt: skip
