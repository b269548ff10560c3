"""Planted bugs, of every language, are noticed by the tests that are there for them (tests/planted/*.toml)."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from runner import Bug, can_plant, check, read_bugs

from catchment.checkout import ROOT

LISTS = sorted(Path(__file__).parent.glob("*.toml"))
BUGS = tuple(read_bugs(*LISTS))
SAMPLE = 2
# Their tests notice them for every seed, and are quick to build; for others see `make planted`.
EVERY_TIME = {
    "P4": [bug for bug in BUGS if bug.file.startswith("p4src/")],
    "SystemVerilog": [bug for bug in BUGS if bug.test_file == "rtl/test_rtl_common.py" and "axil" not in bug.test],
}

needs_mounts = pytest.mark.skipif(not can_plant(), reason="bugs are planted in a mount namespace, which needs root")


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_has_its_place(bug: Bug) -> None:
    assert bug.planted() != (ROOT / bug.file).read_text("utf-8")
    file, _, test = bug.test.partition("::")
    text = (ROOT / "tests" / file).read_text("utf-8")
    if test:
        assert re.search(rf"def {re.escape(test.partition('[')[0])}\(", text), f"{file} has no {test}"


@needs_mounts
@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_planted_bug_is_noticed(bug: Bug, tmp_path: Path) -> None:
    check(bug, tmp_path)


@pytest.mark.sampled(4)
@needs_mounts
@pytest.mark.parametrize("language", EVERY_TIME)
def test_a_bug_of_a_language_is_noticed(language: str, rng: random.Random, tmp_path: Path) -> None:
    check(rng.choice(EVERY_TIME[language]), tmp_path)


@needs_mounts
@pytest.mark.slow  # some tests notice their bug for some seeds only
def test_a_sample_of_planted_bugs_is_noticed(rng: random.Random, tmp_path: Path) -> None:
    for number, bug in enumerate(rng.sample([bug for bug in BUGS if bug.file.endswith(".py")], SAMPLE)):
        (tmp_path / str(number)).mkdir()
        check(bug, tmp_path / str(number))


@pytest.mark.sampled(4)
@needs_mounts
def test_a_bug_that_no_test_notices_is_told(tmp_path: Path) -> None:
    candidates = [bug for bug in BUGS if bug.file.endswith(".py")]
    harmless = Bug(candidates[0].file, candidates[0].old, candidates[0].old + "  # harmless", candidates[0].test)
    with pytest.raises(AssertionError, match="did not notice"):
        check(harmless, tmp_path)


@pytest.mark.sampled(4)
@needs_mounts
def test_hardware_that_cannot_be_built_is_not_noticed(tmp_path: Path) -> None:
    """Its test runs on cocotb, which has an error of its own for it; one that fails on cocotb is noticed."""
    there = next(bug for bug in BUGS if bug.test == "rtl/test_rtl_tags.py::test_hashes")
    broken = Bug(there.file, there.old, f"{there.old} no SystemVerilog", there.test)
    (tmp_path / "broken").mkdir()
    with pytest.raises(AssertionError, match="does not build"):
        check(broken, tmp_path / "broken")
    check(there, tmp_path)
