"""`make check` starts no process, and says which test would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dependencies import files_of_the_checkout, is_test
from quick import FILES, guard, is_quick

TESTS = [name.removeprefix("tests/") for name in files_of_the_checkout() if is_test(name)]


def test_every_row_of_the_list_means_a_file() -> None:
    for glob in FILES:
        assert any(Path(name).match(glob.removeprefix("!")) for name in TESTS), glob


def test_what_is_left_out_again_is_out() -> None:
    assert is_quick("controlplane/test_jobs.py") and not is_quick("controlplane/test_metrics.py")
    assert not is_quick("e2e/test_demo.py")


def test_quick_files_come_last_side_by_side() -> None:
    """Whatever their names: a file that starts processes is begun before all that are short."""
    chosen = ["common/test_serial.py", "selection/test_tiers.py", "structure/test_words.py", "wire/test_frame.py"]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *chosen]
    surroundings = {**os.environ, "PYTEST_ADDOPTS": "", "PYTEST_XDIST_WORKER": "gw0"}
    said = subprocess.run(
        command, cwd=Path(__file__).parents[1], env=surroundings, check=True, capture_output=True, text=True
    ).stdout
    order = [is_quick(line.partition("::")[0].removeprefix("tests/")) for line in said.splitlines() if "::" in line]
    assert order == sorted(order) and len(set(order)) == 2


def test_a_process_is_refused_and_named() -> None:
    with guard():
        with pytest.raises(RuntimeError, match="starts true"):
            subprocess.run(["/bin/true"], check=True)
        with pytest.raises(RuntimeError, match=r"starts os\.fork"):
            os.fork()
        assert subprocess.run(["git", "--version"], check=True, capture_output=True).stdout
    subprocess.run(["/bin/true"], check=True)
