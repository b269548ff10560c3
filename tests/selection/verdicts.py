"""Verdicts of tests that depend on the sources alone, kept by the content of those sources (build/verdicts).

A test with the mark `sources_alone(tool, ...)` draws nothing and waits for nobody: it passes again as long as no file
that it needs has changed, nor the packages, nor one of the programs that the mark names. Such a test is reported as
passed without being run, and the summary says how many were. `CATCHMENT_FRESH=1` runs all of them; an empty folder
build/, as in CI, does as well.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dependencies import closure, dependencies

from catchment.checkout import ROOT, build_folder

MARK = "sources_alone"
_KNOWN = ("verdict", "known")
_ALL_NEED = ("requirements.txt", "pyproject.toml", "tests/conftest.py", "tools/apt-packages.txt")


@cache
def _digest_of_needs(test: str) -> bytes:
    digest = hashlib.sha256()
    for name in sorted({*closure(_needs(), test), *_ALL_NEED}):
        digest.update(name.encode() + b"\0" + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return digest.digest()


_needs = cache(dependencies)


def place(item: pytest.Item, mark: pytest.Mark) -> Path:
    """The place of a test's verdict, if it has one: named by all that the verdict depends on."""
    digest = hashlib.sha256(_digest_of_needs(item.path.relative_to(ROOT).as_posix()))
    digest.update(item.nodeid.encode() + sys.version.encode())
    for tool in mark.args:
        path = shutil.which(tool)
        found = Path(path).resolve().stat() if path else None
        digest.update(f"{tool} {path} {found and (found.st_size, found.st_mtime_ns)}".encode())
    return build_folder() / "verdicts" / digest.hexdigest()


def is_known(item: pytest.Item) -> bool:
    """Whether the test passed over the same content before; its report will say so."""
    mark = item.get_closest_marker(MARK)
    if mark is None or os.environ.get("CATCHMENT_FRESH") or not place(item, mark).is_file():
        return False
    item.user_properties.append(_KNOWN)
    return True


def note(item: pytest.Item, report: pytest.TestReport) -> None:
    """Keep the verdict of a test that has passed."""
    mark = item.get_closest_marker(MARK)
    if mark is not None and report.when == "call" and report.passed and _KNOWN not in report.user_properties:
        path = place(item, mark)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def known(reports: list[pytest.TestReport]) -> int:
    """How many of the reports are of verdicts that were known."""
    return sum(tuple(one) == _KNOWN for report in reports for one in report.user_properties)
