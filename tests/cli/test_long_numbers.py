"""A number of thousands of digits is refused in one message, wherever it stands; Python converts at most 4300."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lab import Run

LONG = {"decimal": "9" * 5000, "hexadecimal": "0x" + "f" * 5000}


@pytest.mark.parametrize("number", LONG.values(), ids=LONG)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("group create s1 1 N", "is not PORT or PORT:INSTANCE"),
        ("group create s1 1 1:N", "is not PORT or PORT:INSTANCE"),
        ("clone create s1 1 N", "is not PORT or PORT:INSTANCE"),
        ("fault set s1 --loss 1 --port N", "switch s1 has no port"),
        ("table add s1 l2 dst=N forward port=1", ""),
        ("table add s1 l2 dst=1 forward port=N", ""),
    ],
)
def test_on_the_command_line(run: Run, words: str, said: str, number: str) -> None:
    assert said in run(*words.replace("N", number).split(), code=1)


@pytest.mark.parametrize("number", LONG.values(), ids=LONG)
def test_of_a_port_of_a_new_switch(call: Run, number: str) -> None:
    assert "is not" in call("switch", "run", "-p", f"{number}:eth0", code=2)


def test_a_port_that_no_switch_has(run: Run) -> None:
    assert "neither a port nor an instance is above 4294967295" in run(
        "group", "create", "s1", "1", f"{1 << 32}", code=1
    )


@pytest.mark.parametrize("number", LONG.values(), ids=LONG)
@pytest.mark.parametrize(
    "line",
    [
        "tables: {acl: [{match: {port: 1}, priority: N, action: drop}]}",
        "tables: {acl: [{match: {port: N}, priority: 1, action: drop}]}",
        "tables: {acl: [{match: {port: 1}, priority: 1, action: drop, params: {threshold: N}}]}",
        "multicast_groups: {1: [{port: N}]}",
        "multicast_groups: {? N : [{port: 1}]}",
        "meters: {flows: {0: {cir: N}}}",
    ],
)
def test_in_a_file_of_entries(run: Run, tmp_path: Path, line: str, number: str) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("format: 1\n" + line.replace("N", number))
    said = run("table", "load", "s1", str(file), code=1)
    assert said == f"catchment: {file}:2: {number[:8]}... is a number of {len(number)} digits, and may have 3000\n"


@pytest.mark.parametrize("number", LONG.values(), ids=LONG)
def test_in_a_topology(call: Run, tmp_path: Path, number: str) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(f"name: lab\nmtu: '{number}'\n")
    assert "lab.yaml:2: mtu: " in call("topology", "check", str(file), code=1)
