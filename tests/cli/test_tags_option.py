"""The option `--tags` of `catchment job create`."""

from __future__ import annotations

from pathlib import Path

from command_lab import Run


def test_a_job_is_asked_for_with_an_option(topology: Path, run: Run) -> None:
    """Refused on a switch that the file gives no tags, and on one that runs another program than the file says."""
    create = ("job", "create", "job", "--workers", "w0,w1", "--root", "opt", "--tags")
    assert "job job has tags, and switch s1 is built without" in run(*create, code=1)
    topology.write_text(topology.read_text().replace("program: luwu.p4", "tags: true, program: luwu.p4"))
    said = run(*create, code=1)
    assert "job job has tags, and the program on" in said and "start the switch again" in said
    run(*create[:-1])
