"""`make test-repeat` names tests that are not always green, with the seeds over which they failed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.checkout import ROOT

REPEAT = ROOT / "tests" / "selection" / "repeat.py"


@pytest.fixture
def sometimes(tmp_path: Path) -> Path:
    path = tmp_path / "test_sometimes.py"
    path.write_text(
        "import os\n"
        "def test_fails_over_two():\n    assert os.environ['CATCHMENT_SEED'] != '2'\n"
        "def test_is_green():\n    pass\n"
        "def test_is_skipped():\n    import pytest\n    pytest.skip('never runs')\n"
    )
    return path


def repeat(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, REPEAT, "--busy", "0", "--side-by-side", "1", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.sampled(3)
def test_the_seed_over_which_a_test_fails_is_named(sometimes: Path) -> None:
    done = repeat(sometimes, "-n", "3", "--json")
    assert done.returncode == 1, done.stderr
    ((name, record),) = json.loads(done.stdout).items()
    assert name.endswith("test_sometimes.py::test_fails_over_two")
    assert record == {"runs": 3, "failed_seeds": [2]}
    assert "round 3 of 3, seed 3: 2 ran, 0 failed" in done.stderr


def test_what_is_always_green_is_said_to_be(sometimes: Path) -> None:
    done = repeat(sometimes, "-n", "1", "-k", "is_green")
    assert (done.returncode, done.stdout) == (0, "1 tests, 1 rounds: 0 not always green\n")


def test_a_selection_of_nothing_is_an_error(sometimes: Path) -> None:
    done = repeat(sometimes, "-n", "1", "-k", "nobody")
    assert done.returncode == 2
    assert "no test is selected" in done.stderr


def test_a_file_that_cannot_be_collected_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n")
    done = repeat(tmp_path / "test_broken.py", "-n", "1")
    assert done.returncode in (1, 2)
    assert "nothing_of_this_name" in done.stderr
