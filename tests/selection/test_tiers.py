"""A run says how long the tests of each tier took, and the tiers are those of the Makefile."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from catchment.checkout import ROOT

sys.path.insert(0, str(Path(__file__).parent))

from tiers import TIERS, tier_of, times


def _report(when: str, seconds: float, *marks: str) -> pytest.TestReport:
    return pytest.TestReport(
        "a test", ("a file", 1, ""), dict.fromkeys(marks, 1), "passed", None, when, duration=seconds
    )


@pytest.mark.parametrize(
    ("marks", "tier"),
    [((), "test"), (("check",), "check"), (("slow",), "test-full"), (("check", "slow"), "test-full")],
)
def test_a_test_is_in_the_quickest_tier_that_runs_it(marks: tuple[str, ...], tier: str) -> None:
    assert tier_of(marks) == tier


def test_each_tier_has_its_tests_and_seconds_of_all_phases() -> None:
    reports = [
        _report("setup", 2.0, "check"),
        _report("call", 1.0, "check"),
        _report("teardown", 0.5, "check"),
        _report("call", 7.0),
        _report("setup", 20.0, "slow"),
    ]
    assert times(reports) == [
        "make check          1 tests,      4 s",
        "make test           1 tests,      7 s",
        "make test-full      0 tests,     20 s",
    ]


def test_a_tier_without_tests_is_not_named() -> None:
    assert times([_report("call", 1.0)]) == ["make test           1 tests,      1 s"]


def test_the_commands_of_the_makefile_run_the_tiers() -> None:
    recipes = dict(re.findall(r"^(check|test|test-full):.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M))
    for tier, marks in TIERS.items():
        said = re.findall(r'-m "([^"]+)"', recipes[tier])
        assert said == ([marks] if marks else []), tier
