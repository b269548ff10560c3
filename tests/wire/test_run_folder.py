"""Which folders an empty environment variable names: none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.wire.run_folder import run_folder


def test_an_empty_variable_is_no_folder_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", "")
    assert run_folder() == Path("/run/catchment")


def test_nothing_is_loaded_from_the_folder_that_a_program_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "_native.py").write_text("raise SystemExit('loaded from where it was started')")
    script = tmp_path / "script" / "program.py"
    script.parent.mkdir()
    script.write_text("from catchment.host import _native; print(_native.__file__)")
    run = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "CATCHMENT_NATIVE_DIR": ""},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert Path(run.stdout.strip()).is_relative_to(ROOT / "build" / "native")
