"""`run_program`: options from parameters, results as exit statuses, wrong options as messages."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated

import pytest
import typer

from catchment.cli import main as command
from catchment.program import one_of, run_program

COLOURS = ("red", "blue")
BOTH = [*COLOURS]


def paint(
    places: Annotated[list[str] | None, typer.Argument()] = None,
    *,
    colour: Annotated[str, typer.Option(callback=one_of(COLOURS))] = "red",
    under: Annotated[list[str], typer.Option(callback=one_of(COLOURS))] = BOTH,
    coats: int = 1,
) -> int | None:
    """Paint places."""
    print(places, colour, under, coats)
    return coats - 1 or None


def status(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        run_program(paint, words, name="paint")
    return ended.value.code


def test_what_is_left_out_has_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert status() == 0
    assert capsys.readouterr().out == "None red ['red', 'blue'] 1\n"


def test_the_result_is_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("door", "wall", "--coats", "4", "--colour", "blue", "--under", "blue") == 3
    assert capsys.readouterr().out == "['door', 'wall'] blue ['blue'] 4\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--colour", "pink"], "'--colour': 'pink' is not one of: red, blue"),
        (["--under", "red", "--under", "pink"], "'--under': 'pink' is not one of: red, blue"),
        (["--coats", "many"], "'--coats'"),
        (["--brush", "3"], "No such option: --brush"),
    ],
)
def test_a_wrong_option_is_named(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(*words) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_the_docstring_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert status("-h") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Usage: paint [OPTIONS]")
    assert "Paint places." in printed
    assert "[default: red, blue]" in printed


@pytest.mark.parametrize(("umask", "kept"), [(0, 0o022), (0o002, 0o002), (0o077, 0o077)])
@pytest.mark.parametrize("program", [lambda: run_program(paint), command], ids=["program", "command"])
def test_a_umask_that_keeps_nothing_from_anybody_is_replaced(
    program: Callable[[], None], umask: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["catchment", "--help"])
    before = os.umask(umask)
    try:
        with pytest.raises(SystemExit):
            program()
    finally:
        left = os.umask(before)
    assert left == kept
