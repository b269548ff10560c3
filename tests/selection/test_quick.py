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


def test_a_process_is_refused_and_named() -> None:
    with guard():
        with pytest.raises(RuntimeError, match="starts true"):
            subprocess.run(["/bin/true"], check=True)
        with pytest.raises(RuntimeError, match=r"starts os\.fork"):
            os.fork()
        assert subprocess.run(["git", "--version"], check=True, capture_output=True).stdout
    subprocess.run(["/bin/true"], check=True)
