"""A kept verdict goes with the sources: any change runs the test again, and what failed is never kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.checkout import ROOT

FILES = ("catchment/__init__.py", "catchment/checkout.py", "tests/conftest.py", "pyproject.toml", "requirements.txt",
         "tools/apt-packages.txt")  # fmt: skip
SAID = "passed before over the same sources"


class Checkout:
    """A checkout of one test, which writes a line into `ran` whenever it runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in FILES:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        shutil.copytree(
            ROOT / "tests" / "selection", root / "tests" / "selection", ignore=shutil.ignore_patterns("test_*")
        )
        (root / "wire").mkdir()
        (root / "catchment" / "wire").symlink_to("../wire")
        (root / "wire" / "__init__.py").write_text("")
        self.source = root / "wire" / "number.py"
        self.source.write_text("NUMBER = 1\n")
        self.test = root / "tests" / "test_number.py"
        self.test.write_text(
            "from pathlib import Path\nimport pytest\nfrom catchment.wire.number import NUMBER\n"
            "@pytest.mark.sources_alone('a-tool')\n"
            f"def test_number():\n    Path({str(root / 'ran')!r}).open('a').write('x')\n    assert NUMBER < 3\n"
        )
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *words, "tests/test_number.py"],
            cwd=self.root, env={**os.environ, "PYTHONPATH": str(self.root), **variables},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def runs(self) -> int:
        return len((self.root / "ran").read_text())


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.sampled(3)
def test_the_same_sources_are_not_asked_twice_and_the_summary_says_so(checkout: Checkout) -> None:
    first = checkout.run()
    assert first.returncode == 0 and SAID not in first.stdout, first.stdout + first.stderr
    for words in ((), ("-n", "1")):
        again = checkout.run(*words)
        assert again.returncode == 0 and f"1 {SAID}" in again.stdout, again.stdout
    assert checkout.runs() == 1
    assert SAID not in checkout.run(CATCHMENT_FRESH="1").stdout
    assert checkout.runs() == 2


@pytest.mark.sampled(3)
def test_a_change_of_what_it_needs_runs_it_again(checkout: Checkout) -> None:
    checkout.run()
    checkout.source.write_text("NUMBER = 2\n")
    assert SAID not in checkout.run().stdout
    (checkout.root / "requirements.txt").write_text("pytest\n")
    assert SAID not in checkout.run().stdout
    tools = checkout.root / "tools"
    (tools / "a-tool").write_text("#!/bin/sh\n")
    (tools / "a-tool").chmod(0o755)
    assert SAID not in checkout.run(PATH=f"{tools}:{os.environ['PATH']}").stdout
    assert checkout.runs() == 4


@pytest.mark.sampled(3)
def test_a_failure_is_never_kept(checkout: Checkout) -> None:
    checkout.source.write_text("NUMBER = 3\n")
    for run in (1, 2):
        assert checkout.run().returncode == 1
        assert checkout.runs() == run
