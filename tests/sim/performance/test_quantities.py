"""Quantities with every unit, and what is none."""

from __future__ import annotations

import pytest

from catchment.sim.performance.quantities import (
    Dimension,
    about_share,
    about_size,
    about_time,
    quantity,
    size_text,
    whole,
)

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


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0 s"), (4e-13, "0.400 ps"), (3.973e-10, "397.3 ps"), (9.9994e-7, "999.9 ns"), (9.9996e-7, "1.000 us"),
     (3.07476e-6, "3.075 us"), (0.0012345, "1.234 ms"), (9.9996e-3, "10.00 ms"), (1.9, "1.900 s"),
     (12345.6, "12,346 s")],
)  # fmt: skip
def test_times_to_four_digits(seconds: float, text: str) -> None:
    assert about_time(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0.0, "0 B"), (1.0, "1 B"), (1023.0, "1,023 B"), (1536.0, "1.500 KiB"), (96.0 * 2**20, "96.00 MiB"),
     (3e15, "2,728 TiB")],
)  # fmt: skip
def test_sizes_to_four_digits(size: float, text: str) -> None:
    assert about_size(size) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (1e-16, "0.0 %"), (1e-6, "< 0.1 %"), (0.00049, "< 0.1 %"), (0.069, "6.9 %"), (1.0, "100.0 %")],
)
def test_shares_that_are_there_are_no_zero(share: float, text: str) -> None:
    assert about_share(share) == text


@pytest.mark.parametrize("text", ["", "1_000", "1.5", "0x10", "\u0663", " 1", "1" * 31])
def test_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match=r"size=.*: give a whole number"):
        whole("size", text)


def test_whole_numbers() -> None:
    assert [whole("size", text) for text in ("0", "007", "-3", "+4")] == [0, 7, -3, 4]
