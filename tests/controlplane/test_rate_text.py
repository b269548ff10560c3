"""Rates in texts, from the least to the most."""

from __future__ import annotations

import pytest

from catchment.controlplane.topology.rate_text import bits_per_second


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1kbit", 1_000), ("1.5kbit", 1_500), ("999kbit", 999_000), ("0.001mbit", 1_000), ("400mbit", 400_000_000),
        ("10gbit", 10_000_000_000), ("400gbit", 400_000_000_000), ("0.000001gbit", 1_000),
        ("123456.654321mbit", 123_456_654_321),
    ],
)  # fmt: skip
def test_a_rate(text: str, rate: int) -> None:
    assert bits_per_second(text) == rate


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "1bit", "0.999kbit", "0kbit", "400.000001gbit", "401gbit", "-1mbit", "1 mbit", "1mbit ", "1e3kbit",
        "1Mbit", "1234567kbit", "1.1234567mbit", ".5mbit", "5.mbit",
    ],
)  # fmt: skip
def test_no_rate(text: str) -> None:
    assert bits_per_second(text) is None
