"""Tables print what members, paths and programs are called: none of it is markup, and no terminal obeys it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command_lab import Run

from catchment.checkout import ROOT
from catchment.cli import glm, stats
from catchment.cli.output import print_parts, print_table
from catchment.controlplane.diagnosis.stats import SwitchStats
from catchment.host import glm as host_glm
from catchment.host.glm.numbers import Loss

MARKUP = ("no room in [/dev/shm]", "[link=http://there]here", "[blink]", "[rank0]", ":smile:")
CONTROL = "\x1b]0;title\x07 \x9b2J a\rb\x08c \u202e \udcff"
"""Sets a title, clears a screen, writes over what is there, turns the direction of the text."""
ESCAPED = r"\x1b]0;title\x07 \x9b2J a\rb\x08c \u202e \udcff"
PROGRAMS = ROOT / "tests" / "softswitch" / "stf" / "programs"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The output is taken for a terminal."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("text", MARKUP)
def test_no_text_in_a_table_is_markup(capsys: pytest.CaptureFixture[str], text: str) -> None:
    print_table(f"title {text}", (f"column {text}",), [(f"cell {text}",)])
    print_parts([f"remark {text}"])
    said = capsys.readouterr().out
    assert all(f"{part} {text}" in said for part in ("title", "column", "cell", "remark"))


@pytest.mark.usefixtures("terminal")
def test_no_text_in_a_table_is_an_order_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(CONTROL, (CONTROL,), [(CONTROL,), ("one\ntwo",)])
    print_table(CONTROL, (), [])
    print_parts([CONTROL])
    said = capsys.readouterr().out
    assert said.count(ESCAPED) == 5
    assert not set("\x07\x08\r\x9b\u202e\udcff") & set(said)
    assert "\x1b]" not in said
    assert "one\\" not in said, "a cell may have several lines"


@pytest.mark.usefixtures("terminal")
def test_a_screen_that_is_drawn_anew_has_no_markup_either(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def sleep(_: float) -> None:
        raise KeyboardInterrupt

    found = SwitchStats("s1", {"reason [/x]": 1, "\x1b]0;": 1}, (), {1: "[blink]"})
    monkeypatch.setattr(stats, "_look_if_up", lambda *_: (found, []))
    monkeypatch.setattr(time, "sleep", sleep)
    said = run("stats", "--watch", "1")
    assert all(text in said for text in ("reason [/x]", r"\x1b]0;", "[blink]"))


def test_a_folder_is_called_what_it_is_called(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("p[") / "x]"
    folder.mkdir(parents=True)
    for source in (*PROGRAMS.glob("hashing.*"), PROGRAMS / "include"):
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / source.name)
    assert "p[/x]" in call("p4", "stf", "p[/x]", "-I", "p[/x]/include", "--interpret")


def test_what_a_worker_tells_of_its_training_is_no_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(_: Any, tell: Callable[[str], None], __: Any) -> None:
        tell("w0 waits for [/dev/shm] \x1b]0;title\x07")

    monkeypatch.setattr(host_glm, "train", train)
    prepared: Any = SimpleNamespace(training=SimpleNamespace(epochs=1, loss=Loss.LOGISTIC))
    told: Any = lambda _, notice: notice  # noqa: E731  in the place of what runs a training
    glm._run(prepared, told)
    assert r"w0 waits for [/dev/shm] \x1b]0;title\x07" in capsys.readouterr().err
