"""The benchmarks' native tools say what is wrong with their command line."""

from __future__ import annotations

import subprocess

import pytest

from catchment.checkout import NATIVE

RATE = ["rate", "frames", "4", "a,b", "c", "16", "1", "1"]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("switch-load", [], "kind is required"),
        ("switch-load", ["fast", *RATE[1:]], "fast"),
        ("switch-load", [*RATE[:2], "four", *RATE[3:]], "four"),
        ("switch-load", ["drain", *RATE[1:]], "is given for drain"),
        ("switch-load", [*RATE, "77"], "is given for drain"),
        ("shm-load", RATE[:-1], "first is required"),
        ("shm-load", [*RATE, "more"], "more"),
        ("bare-forwarder", ["a"], "output is required"),
        ("bare-forwarder", ["a", "b", "some"], "some"),
        ("hand-overs", ["rings", "4096", "3"], "rings"),
        ("hand-overs", ["copies", "0", "3"], "not in range"),
        ("hand-overs", ["copies", "4096"], "rounds is required"),
    ],
)
def test_wrong_command_lines_are_told(tool: str, arguments: list[str], words: str) -> None:
    result = subprocess.run([str(NATIVE / "bench" / tool), *arguments], check=False, capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
