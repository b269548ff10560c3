"""Options that are a number of seconds: what no clock takes is wrong usage, before anything is asked."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from command_lab import Run

from catchment import cli
from catchment.cli.seconds import MAX_SECONDS

CALLS = (
    "doctor train --seconds", "diagnose train --seconds", "stats --watch", "capture s1:1 --seconds",
    "controller run --silence", "traffic worker train --host w0 --seconds", "traffic worker train --host w0 --patience",
    "proxy profile job.json w0 --timeout", "proxy plan profile.json --forward", "proxy plan profile.json --backward",
    "glm train x --timeout",
)  # fmt: skip


@pytest.mark.parametrize("value", ["1e18", "inf", "nan"])
@pytest.mark.parametrize("words", CALLS)
def test_a_number_of_seconds_that_no_clock_takes_is_wrong_usage(run: Run, words: str, value: str) -> None:
    assert f" {MAX_SECONDS} " in run(*words.split(), value, code=2)


def test_every_option_in_seconds_has_the_bound() -> None:
    """An option whose help begins with or is about seconds is made by `seconds_option`."""
    for source in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option" and source.stem != "seconds":
                said = "".join(ast.unparse(word.value) for word in node.keywords if word.arg == "help")
                assert "how long" not in said.lower(), f"{source}:{node.lineno}"
                assert "Seconds" not in said or "LOW..HIGH" in said, f"{source}:{node.lineno}"
