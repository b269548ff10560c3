"""`job create --token-file` where no controller runs: nobody gives a token."""

from __future__ import annotations

from pathlib import Path

from command_lab import Run, as_json


def test_without_a_controller_it_is_refused_before_the_job_is_made(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "token"
    words = ("job", "create", "train", "-w", "w0,w1", "--root", "opt", "--token-file", str(file))
    assert f"--token-file {file}: tokens are a controller's; start one with" in run(*words, code=1)
    assert not file.exists()
    assert as_json(run, "job", "list") == []
