"""Bugs planted in the hardware, and the test that must fail over each: a suite that passes over a bug proves nothing.

Each runs in a copy of the sources, so that nothing in the repository changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from catchment.checkout import ROOT

# What a test of the hardware needs of the repository.
NEEDED = (
    "catchment", "rtl", "hls", "wire", "common", "tests", "sim", "softswitch", "host", "controlplane", "pyproject.toml",
    "requirements.txt", "build/native",
)  # fmt: skip
COPIED = ("catchment", "rtl", "pyproject.toml")


@dataclass(frozen=True)
class Bug:
    """A row of planted_bugs.toml."""

    file: str
    old: str
    new: str
    test: str


BUGS = tuple(Bug(**bug) for bug in tomllib.loads(Path(__file__).with_name("planted_bugs.toml").read_text())["bug"])
# In `make test`: quick to build, and one of each kind of bench.
SAMPLE = tuple(bug for bug in BUGS if "test_rtl_common" in bug.test)[:2]


def _tree(root: Path) -> None:
    for name in NEEDED:
        source = ROOT / name
        if name not in COPIED:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, root / name, symlinks=True)
        else:
            shutil.copy(source, root / name)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{Path(bug.file).stem}: {bug.old[:30]}")
def test_a_planted_bug_still_has_its_place(bug: Bug) -> None:
    assert (ROOT / "rtl" / bug.file).read_text().count(bug.old) == 1
    file, test = bug.test.split("::")
    assert f"def {test.partition('[')[0]}(" in (Path(__file__).parent / file).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: f"{Path(bug.file).stem}: {bug.old[:30]}")
def test_a_planted_bug_is_caught(bug: Bug, tmp_path: Path) -> None:
    check(bug, tmp_path)


@pytest.mark.parametrize("bug", SAMPLE, ids=lambda bug: Path(bug.file).stem)
def test_a_sample_of_planted_bugs_is_caught(bug: Bug, tmp_path: Path) -> None:
    check(bug, tmp_path)


def check(bug: Bug, root: Path) -> None:
    _tree(root)
    path = root / "rtl" / bug.file
    text = path.read_text()
    assert text.count(bug.old) == 1, f"{bug.file} has {text.count(bug.old)} times: {bug.old}"
    path.write_text(text.replace(bug.old, bug.new))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--rootdir", root, root / "tests" / "rtl" / bug.test],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1, f"the test did not fail over the bug:\n{result.stdout}{result.stderr}"
    assert "1 failed" in result.stdout, result.stdout
    assert "RtlError" not in result.stdout, f"it did not build, which is no test:\n{result.stdout}"
