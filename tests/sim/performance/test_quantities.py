"""Quantities with every unit, and what is none."""

from __future__ import annotations

import pytest

from catchment.sim.performance.quantities import Dimension, quantity, size_text

UNITS = {
    Dimension.TIME: {"ps": 1, "ns": 1_000, "us": 1_000_000, "ms": 1_000_000_000, "s": 1_000_000_000_000},
    Dimension.SIZE: {
        "B": 1, "KiB": 1024, "MiB": 1_048_576, "GiB": 1_073_741_824, "TiB": 1_099_511_627_776,
        "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000, "TB": 1_000_000_000_000,
    },
    Dimension.BIT_RATE: {"mbps": 1_000_000, "gbps": 1_000_000_000, "tbps": 1_000_000_000_000},
    Dimension.BYTE_RATE: {"MBps": 1_000_000, "GBps": 1_000_000_000, "TBps": 1_000_000_000_000},
    Dimension.FLOPS: {"gflops": 1_000_000_000, "tflops": 1_000_000_000_000, "pflops": 1_000_000_000_000_000},
    Dimension.FRAME_RATE: {"pps": 1, "mpps": 1_000_000, "gpps": 1_000_000_000},
}  # fmt: skip


@pytest.mark.parametrize("dimension", Dimension)
def test_every_unit(dimension: Dimension) -> None:
    assert dict(dimension.units) == UNITS[dimension]
    for unit, worth in UNITS[dimension].items():
        assert quantity(f" 2.5 {unit} ", dimension) == 2.5 * worth
        assert quantity(f"3e2{unit}", dimension) == 300 * worth


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("10", "'10' has no unit: give one of ps, ns, us, ms, s"),
        ("10MiB", "'MiB' is no unit of a time"),
        ("ten ns", "'ten ns' is no time: give a number and a unit"),
        ("-1ns", "is no time"),
        ("1 ns ns", "is no time"),
    ],
)
def test_what_is_no_time(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quantity(text, Dimension.TIME)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0B"), (1, "1B"), (1000, "1000B"), (1024, "1KiB"), (1536, "1536B"), (3 << 20, "3MiB"), (1 << 40, "1TiB"),
     (1 << 50, "1024TiB")],
)  # fmt: skip
def test_sizes_as_texts(size: int, text: str) -> None:
    assert size_text(size) == text
