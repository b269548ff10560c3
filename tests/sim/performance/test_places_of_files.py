"""A file that could not be written is refused before the simulation that it is of, not after it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_apart, writing
from catchment.sim.performance import flow, side_by_side
from catchment.sim.performance.figures import page
from catchment.sim.performance.steps import execute
from catchment.sim.performance.workload import Workload

CLUSTER = ["--cluster", str(ROOT / "sim" / "clusters" / "four-racks.yaml")]
SMALL, OTHER_SMALL = ["--set", "layers=2", "--set", "hidden=256"], ["--layers", "2", "--hidden", "256"]
SWEEP = ["--sweep", "links.host=25gbps,100gbps"]
COMMANDS = {
    "trace of rounds": ["simulate", "allreduce", *CLUSTER, "--trace"],
    "plot of rounds": ["simulate", "allreduce", *CLUSTER, *SWEEP, "--plot"],
    "trace of a step": ["simulate", "ddp", *CLUSTER, *SMALL, "--trace"],
    "plot of a step": ["simulate", "ddp", *CLUSTER, *SMALL, *SWEEP, "--plot"],
    "trace of the other verb": ["simulate-step", "zero3", *CLUSTER, *OTHER_SMALL, "--trace"],
    "plot of the other verb": ["simulate-step", "zero3", *CLUSTER, *OTHER_SMALL, *SWEEP, "--plot"],
    "figures": ["simulate", "figures", "--output"],
}
WRITE_ET = ["simulate-step", "ddp", *CLUSTER, *OTHER_SMALL, "--write-et"]


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise AssertionError("something ran")

    for where, name in (
        (Workload, "run"), (execute._Execution, "run"), (side_by_side, "each"), (flow, "flow_seconds"),
        (page, "write_pages"),
    ):  # fmt: skip
        monkeypatch.setattr(where, name, run)


@pytest.fixture(autouse=True)
def _protected(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has this name may not be written, not even by root."""
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda at, mode: access(at, mode) and not (mode == os.W_OK and Path(at).name == "protected.svg")
    )


def refused(words: list[str], path: Path, said: str) -> None:
    before = sorted(path.parents[1].rglob("*"))
    with pytest.raises(ControlPlaneError, match=rf"^cannot write {words[-1]} {path}: {said}"):
        CliRunner().invoke(app, [*words, str(path)], catch_exceptions=False)
    assert sorted(path.parents[1].rglob("*")) == before


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_file_that_cannot_be_written(words: list[str], tmp_path: Path) -> None:
    for name in ("file", "protected.svg"):
        (tmp_path / name).touch()
    refused(words, tmp_path / "nowhere" / "x.svg", f"there is no folder {tmp_path}/nowhere; make it first")
    refused(words, tmp_path / "file" / "x.svg", f"there is no folder {tmp_path}/file")
    refused(words, tmp_path / "protected.svg", r"it may not be written; give another path")
    refused(words, tmp_path / f"{'n' * 300}.svg", "File name too long")


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_folder_that_cannot_be_written(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "protected.svg").mkdir()
    refused(words, tmp_path / "protected.svg" / "x.svg", f"{tmp_path}/protected.svg may not be written")
    shown = CliRunner().invoke(app, [*words, str(tmp_path)])
    assert shown.exit_code == 2 and "directory" in shown.output


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_file_that_can_be_written_is_run_for(words: list[str], tmp_path: Path) -> None:
    """A new one, and one that is there."""
    (tmp_path / "old.svg").write_text("old")
    for name in ("new.svg", "old.svg"):
        with pytest.raises(AssertionError, match="something ran"):
            CliRunner().invoke(app, [*words, str(tmp_path / name)], catch_exceptions=False)
    assert [path.name for path in tmp_path.iterdir()] == ["old.svg"]
    assert (tmp_path / "old.svg").read_text() == "old"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS], ids=errno.errorcode.get)
def test_what_cannot_be_written_after_all_is_named(number: int) -> None:
    """A disk that is full names no file."""
    why = os.strerror(number)
    with pytest.raises(ControlPlaneError, match=f"^cannot write x.json: {why}$"), writing(Path("x.json")):
        raise OSError(number, why)
    with pytest.raises(ControlPlaneError, match=f"^cannot write other: {why}$"), writing(Path("x.json")):
        raise OSError(number, why, "other")


def test_pages_beside_that_of_the_figures(tmp_path: Path) -> None:
    papers = tmp_path / "pages" / "papers.md"
    papers.parent.mkdir()
    words = ["simulate", "figures", "--output", str(papers)]
    for at in page.pages_at(papers)[1:]:
        at.mkdir()
        with pytest.raises(ControlPlaneError, match=f"^cannot write --output {at}: it is a folder; give the path of a"):
            CliRunner().invoke(app, words, catch_exceptions=False)
        at.rmdir()
    page.figure_of(papers).parent.touch()
    with pytest.raises(ControlPlaneError, match=f"{tmp_path}/figures is no folder; give another path"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_page_in_this_folder_has_a_figure_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert page.figure_of(Path("papers.md")).parent == tmp_path / "figures"


def test_a_folder_of_traces_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "protected.svg").mkdir()
    refused(WRITE_ET, tmp_path / "file" / "a" / "b", f"{tmp_path}/file is no folder; give another path")
    refused(WRITE_ET, tmp_path / "protected.svg" / "a", f"{tmp_path}/protected.svg may not be written")
    with pytest.raises(AssertionError, match="something ran"):
        CliRunner().invoke(app, [*WRITE_ET, str(tmp_path / "a" / "b")], catch_exceptions=False)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        (["simulate", "allreduce"], "--cluster", "--trace"),
        (["simulate", "allreduce", *SWEEP], "--cluster", "--plot"),
        (["simulate", "ddp", *CLUSTER, *SMALL, "--sweep", "batch=1"], "--trace", "--plot"),
        (["simulate-step", "ddp", *OTHER_SMALL], "--cluster", "--trace"),
        (["simulate-step", "ddp", *CLUSTER, *OTHER_SMALL], "--trace", "--write-et"),
    ],
    ids=str,
)
def test_two_options_do_not_name_the_same_file(words: list[str], first: str, second: str, tmp_path: Path) -> None:
    path, same = tmp_path / "one.svg", tmp_path / "." / "other.svg"
    if first == "--cluster":
        path.write_text("fabric: {kind: one-switch, hosts: 2}\n", "utf-8")
        same.symlink_to(path)
    else:
        same = path
    before = sorted(tmp_path.iterdir()), path.read_bytes() if path.exists() else None
    with pytest.raises(ControlPlaneError, match=rf"^{first} and {second} are both {same}: give each a file of its own"):
        CliRunner().invoke(app, [*words, first, str(path), second, str(same)], catch_exceptions=False)
    assert before == (sorted(tmp_path.iterdir()), path.read_bytes() if path.exists() else None)


def test_a_topology_is_not_drawn_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_bytes((ROOT / "sim" / "topologies" / "one-switch.yaml").read_bytes())
    before = path.read_bytes()
    with pytest.raises(ControlPlaneError, match=f"FILE and --output are both {path}"):
        CliRunner().invoke(app, ["topology", "draw", str(path), "--output", str(path)], catch_exceptions=False)
    assert path.read_bytes() == before


def test_what_is_no_file_may_be_named_twice() -> None:
    check_apart(("--trace", Path("/dev/null")), ("--plot", Path("/dev/null")), ("--write-et", None))
