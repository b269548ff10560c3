"""The command as a person types it, with a state of its own for each test."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lab import ROOT

FOUND = 3  # exit code of diagnose and doctor when something is wrong
Catchment = Callable[..., str]
"""Runs a verb, checks its exit code (`code`, 0 unless given), and gives what it printed, or its complaint."""


@contextmanager
def verbs(folder: Path, network: str, patch: pytest.MonkeyPatch) -> Iterator[Catchment]:
    """The verbs on a network of that name, which is taken down behind them; state files go to `folder`."""
    run = Path(tempfile.mkdtemp(prefix="ct-"))  # short: sockets lie in it
    patch.setenv("CATCHMENT_TIMEOUT", "60")
    patch.setenv("CATCHMENT_RUN_DIR", str(run))
    patch.setenv("CATCHMENT_STATE_DIR", str(folder / "state"))

    def call(*words: str, code: int = 0) -> str:
        command = [sys.executable, "-m", "catchment.cli", *words]
        result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=400, check=False)
        assert result.returncode == code, f"{words}: {result.stdout}\n{result.stderr}"
        return result.stdout if code in (0, FOUND) else result.stderr

    yield call
    subprocess.run([sys.executable, "-m", "catchment.cli", "net", "down", network], cwd=ROOT, check=True)
    shutil.rmtree(run)
