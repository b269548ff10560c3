"""The shares of planted bugs that tiers notice are counted from the quickest tier on, and nobody's are named."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runner import Bug, objection
from shares import first_tier, is_case, shares, tiers_of
from tiers import TIERS

BUG = Bug("host/a.py", "a", "b", "host/test_a.py::test_it")
ALL = {tier: [BUG.test] for tier in TIERS}


@pytest.mark.parametrize(
    ("noticing", "tiers", "tier"),
    [
        (set(TIERS.values()), ALL, "check"),
        ({"not slow", ""}, ALL, "test"),
        ({""}, ALL, "test-full"),
        (set(TIERS.values()), {**ALL, "check": []}, "test"),
        (set(), ALL, "nobody"),
        (set(TIERS.values()), {tier: [] for tier in TIERS}, "nobody"),
    ],
)
def test_a_bug_is_noticed_by_the_quickest_tier_that_has_a_failing_case(
    noticing: set[str], tiers: dict[str, list[str]], tier: str
) -> None:
    found, said = first_tier(BUG, tiers, lambda bug, marks: "" if marks in noticing else "passed")
    assert found == tier
    assert bool(said) == (tier == "nobody")


@pytest.mark.parametrize(
    ("code", "said", "why"),
    [
        (1, "1 failed in 2 s", ""),
        (1, "+++++ Timeout +++++", ""),
        (-signal.SIGSEGV, "Fatal Python error", ""),
        (128 + signal.SIGABRT, "terminate called", ""),
        (0, "1 passed", "did not notice"),
        (1, "1 error in 2 s", "no test failed"),
        (2, "interrupted", "did not notice"),
        (99, "error: 'x' was not declared", "does not build"),
        (124, "", "did not notice"),
        (128 + signal.SIGKILL, "", "did not notice"),
        (-signal.SIGTERM, "", "did not notice"),
    ],
)
def test_a_bug_is_noticed_by_a_failed_test_a_crash_or_a_timeout_and_by_nothing_else(
    code: int, said: str, why: str
) -> None:
    found = objection(BUG, code, said)
    assert bool(found) == bool(why)
    assert why in found


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("rtl/a.sv", "E  catchment.rtl.verilate.RtlError: no such signal"),
        ("rtl/a.svh", "E  catchment.rtl.synth.SynthError: no such signal"),
        ("p4src/a.p4", "E  catchment.softswitch.errors.CompileError: no such field"),
    ],
)
def test_what_cannot_be_built_is_not_noticed(file: str, said: str) -> None:
    """A simulator, the synthesis of a netlist or the compiler refuses it."""
    assert "does not build" in objection(Bug(file, "a", "b", BUG.test), 1, f"{said}\n1 failed")


def test_a_tier_has_what_quicker_ones_notice() -> None:
    lines = shares(Counter({"check": 1, "test": 2, "nobody": 1}))
    assert [line.split()[1:5] for line in lines] == [
        ["check", "1", "of", "4"], ["test", "3", "of", "4"], ["test-full", "3", "of", "4"],
    ]  # fmt: skip
    assert [line.split()[-2] for line in lines] == ["25", "75", "75"]


@pytest.mark.parametrize(
    ("case", "is_one"),
    [
        ("host/test_a.py::test_it", True),
        ("host/test_a.py::test_it[1-2]", True),
        ("host/test_a.py::test_it_not", False),
        ("host/test_b.py::test_it", False),
    ],
)
def test_cases_belong_to_the_test_that_they_are_of(case: str, is_one: bool) -> None:
    assert is_case(case, BUG.test) == is_one
    assert is_case(case, BUG.test_file) == case.startswith("host/test_a.py")


def test_each_tier_has_the_tests_of_which_it_runs_a_case() -> None:
    test = "selection/test_tiers.py"
    assert tiers_of([test]) == {"check": [], "test": [test], "test-full": [test]}


def test_tests_that_cannot_be_collected_are_said() -> None:
    with pytest.raises(ValueError, match=r"of make check cannot be collected:\n(.|\n)*no_such_file"):
        tiers_of(["no_such_file.py"])
