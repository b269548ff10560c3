"""Figures of sweeps, and the processes that run them."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.side_by_side import each
from catchment.sim.performance.sweep_plot import FORMATS, plot_sweep

CLUSTER = str(ROOT / "sim" / "clusters" / "four-racks.yaml")
ROUNDS = ["simulate", "allreduce", "--cluster", CLUSTER, "--mode", "flow"]
STEP = ["simulate", "ddp", "--cluster", CLUSTER, "--set", "layers=2", "--set", "hidden=256"]
OTHER_STEP = ["simulate-step", "zero3", "--cluster", CLUSTER, "--layers", "2", "--hidden", "256"]


@pytest.mark.parametrize(
    ("words", "says"), [(ROUNDS, "us a round"), (STEP, "s a step"), (OTHER_STEP, "s a step")], ids=str
)
def test_a_sweep_is_drawn_with_what_was_swept(words: list[str], says: str, tmp_path: Path) -> None:
    texts = []
    for name in ("a.svg", "b.svg"):
        sweeps = ["--sweep", "links.host=25gbps,100gbps", "--sweep", "fabric.racks=1,2"]
        done = CliRunner().invoke(app, [*words, *sweeps, "--plot", str(tmp_path / name)], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        texts.append((tmp_path / name).read_text("utf-8"))
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", texts[0])
    for text in ("links.host", "25gbps", "100gbps", "fabric.racks=1", "fabric.racks=2", says):
        assert text in drawn
    assert texts[0] == texts[1]


def test_points_are_where_their_values_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes on a logarithmic axis at their bytes, names one beside another."""
    seen = []
    monkeypatch.setattr(
        "matplotlib.figure.Figure.savefig", lambda self, path, metadata: seen.append((self.axes[0], metadata))
    )
    sizes = [({"size": text, "kind": kind}, at) for at, (text, kind) in enumerate(
        [("1MiB", "a"), ("1KiB", "a"), ("1MiB", "b"), ("1KiB", "b")], 1)]  # fmt: skip
    plot_sweep(tmp_path / "x.png", "title", sizes, "s")
    plot_sweep(tmp_path / "x.png", "title", [({"policy": "paper"}, 1.0), ({"policy": "single"}, 2.0)], "s")
    (by_size, _), (by_name, _) = seen
    assert [line.get_xydata().tolist() for line in by_size.lines] == [
        [[1024, 2], [1 << 20, 1]],
        [[1024, 4], [1 << 20, 3]],
    ]
    assert (by_size.get_xscale(), by_size.get_yscale()) == ("log", "linear")
    assert [line.get_xydata().tolist() for line in by_name.lines] == [[[0, 1], [1, 2]]]
    assert [tick.get_text() for tick in by_name.get_xticklabels()] == ["paper", "single"]


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_written(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{ending}"
    plot_sweep(path, "title", [({"rounds": "1"}, 1.0), ({"rounds": "2"}, 2.0)], "s")
    first = path.read_bytes()
    plot_sweep(path, "title", [({"rounds": "1"}, 1.0), ({"rounds": "2"}, 2.0)], "s")
    assert first == path.read_bytes()
    assert len(first) > 1000


@pytest.mark.parametrize("words", [ROUNDS, STEP, OTHER_STEP], ids=str)
def test_what_cannot_be_drawn_is_refused(words: list[str], tmp_path: Path) -> None:
    sweep = ["--sweep", "fabric.racks=1,2"]
    for more, says in (
        (["--plot", str(tmp_path / "x.svg")], "give --sweep"),
        ([*sweep, "--plot", str(tmp_path / "x.gif")], r"x\.gif: a plot is a file that ends in \.svg, \.png, \.pdf"),
        ([*sweep, "--plot", str(tmp_path / "nowhere" / "x.svg")], "cannot write .*nowhere"),
    ):
        with pytest.raises(ControlPlaneError, match=says):
            CliRunner().invoke(app, [*words, *more], catch_exceptions=False)


def test_points_are_run_in_fresh_processes() -> None:
    """A fork of a program with threads dies of what these held, now and then."""
    forks: list[int] = []
    os.register_at_fork(before=lambda: forks.append(1))
    shares: list[float] = []
    assert each(math.sqrt, [1.0, 4.0, 9.0], 2, shares.append) == [1.0, 2.0, 3.0]
    assert shares == [1 / 3, 2 / 3, 1.0]
    assert not forks


def test_a_process_that_is_killed_is_told() -> None:
    said = r"a process of the sweep was killed when 0 of 2 points were done, .* give fewer --processes"
    with pytest.raises(PerformanceError, match=said):
        each(signal.raise_signal, [signal.SIGKILL, signal.SIGKILL], 2, lambda _: None)


def test_an_error_of_a_point_ends_the_others(tmp_path: Path) -> None:
    """The second point would read for ever."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileNotFoundError):
        each(Path.read_bytes, [tmp_path / "absent", tmp_path / "pipe"], 2, lambda _: None)


IMPORTED = """\
import multiprocessing, os, signal, threading

if multiprocessing.current_process().name != "MainProcess":
    signal.raise_signal(signal.SIGINT)
    os.write(1, b"importing\\n")  # as a whole
    threading.Event().wait()

def run(_): ...
"""
SWEEP = """\
import imported
from catchment.sim.performance.side_by_side import each

if __name__ == "__main__":
    try:
        each(imported.run, [1, 2], 2, print)
    except KeyboardInterrupt:
        print("ended")
"""


def test_ctrl_c_while_processes_import_is_quiet(tmp_path: Path) -> None:
    """The terminal sends it to all of them, whatever they are doing, in any order."""
    (tmp_path / "imported.py").write_text(IMPORTED)
    (tmp_path / "sweep.py").write_text(SWEEP)
    command = [sys.executable, str(tmp_path / "sweep.py")]
    with subprocess.Popen(command, stdout=-1, stderr=-1, text=True, start_new_session=True) as sweep:
        try:
            assert sweep.stdout is not None
            assert [sweep.stdout.readline() for _ in range(2)] == ["importing\n"] * 2
            os.killpg(sweep.pid, signal.SIGINT)
            assert sweep.communicate() == ("ended\n", "")
        finally:
            with suppress(ProcessLookupError):
                os.killpg(sweep.pid, signal.SIGKILL)
