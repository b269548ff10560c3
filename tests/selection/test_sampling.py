"""What `make test` draws of long tests: alike in every process of a run, other cases for another seed, files whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sampling import is_drawn

pytest_plugins = ["pytester"]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import sampling
def pytest_configure(config):
    config.addinivalue_line("markers", "slow: long")
    config.addinivalue_line("markers", "sampled(n): long")
def pytest_itemcollected(item):
    sampling.leave_to_the_long_run(item, int(item.config.getoption("--seed")))
def pytest_addoption(parser):
    parser.addoption("--seed")
"""
CASES = """
import pytest
@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(20))
def test_of_many(case): pass
@pytest.mark.sampled(3, together=True)
@pytest.mark.parametrize("case", range(20))
def test_of_one_fixture(case): pass
def test_short(): pass
"""
FILE = """
import pytest
pytestmark = pytest.mark.sampled(3)
@pytest.mark.parametrize("case", range(20))
def test_of_a_file(case): pass
"""


def test_one_in_n_is_drawn_and_every_case_for_some_seed() -> None:
    names = [f"case {number}" for number in range(50)]
    drawn = {seed: {name for name in names if is_drawn(name, 3, seed)} for seed in range(100)}
    assert 0.3 < sum(len(each) for each in drawn.values()) / 5000 < 0.37
    assert set.union(*drawn.values()) == set(names)
    assert drawn[1] != drawn[2]


def test_a_run_has_what_its_seed_draws_and_the_long_run_has_all(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_cases=CASES, test_file=FILE)

    def collected(seed: int, marks: str) -> list[str]:
        found = pytester.runpytest_inprocess("--collect-only", "-q", "-m", marks, f"--seed={seed}", "-p", "no:xdist")
        return [line for line in found.outlines if "::" in line]

    sizes, together = set(), set()
    for seed in range(1, 13):
        names = collected(seed, "not slow")
        assert "test_cases.py::test_short" in names
        of_many = [name for name in names if "test_of_many" in name]
        assert 0 < len(of_many) < 20
        sizes.add(len([name for name in names if "test_of_a_file" in name]))
        together.add(len([name for name in names if "test_of_one_fixture" in name]))
        assert len(collected(seed, "")) == 61
    assert sizes == together == {0, 20}
