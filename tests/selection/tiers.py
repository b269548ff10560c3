"""The tiers of tests, from the quickest on: what each command of the Makefile runs, and how long each of them took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

import pytest

TIERS = {"check": "check and not slow", "test": "not slow", "test-full": ""}
"""What each command runs, as pytest's expression over marks; the Makefile has the same ones."""


def tier_of(marks: Container[str]) -> str:
    """The quickest tier that has a test with these marks."""
    if "slow" in marks:
        return "test-full"
    return "check" if "check" in marks else "test"


def times(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each tier whose tests ran: how many tests it adds to the quicker ones, and their seconds.

    The seconds are those of all phases of a test (set-up, call, end), summed over tests that ran side by side.
    """
    tests: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for report in reports:
        tier = tier_of(report.keywords)
        tests[tier] += report.when == "call"
        seconds[tier] += report.duration
    return [f"make {tier:10}{tests[tier]:6} tests, {seconds[tier]:6.0f} s" for tier in TIERS if tier in seconds]
