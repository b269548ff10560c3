"""The command names every verb and loads the one that is called."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from catchment.checkout import ROOT
from catchment.cli import Verbs, app
from catchment.sim.lab.traffic.attack_kind import AttackKind

_LOADED = """
import sys
from catchment.cli import main
sys.argv = ["catchment", *sys.argv[1:]]
try:
    main()
finally:
    sys.stderr.write("\\n".join(sys.modules))
"""


def run(code: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True, text=True, cwd=ROOT, timeout=120, check=True, env={**os.environ, **environment},
    )  # fmt: skip


def loaded(*words: str, **environment: str) -> set[str]:
    """The modules that a command line loads."""
    return set(run(_LOADED, *words, **environment).stderr.split())


def verbs_in(modules: set[str]) -> set[str]:
    """The files of verbs among modules."""
    files = {verb.module for verb in Verbs.verbs.values()}
    return {name.rpartition(".")[2] for name in modules if name.startswith("catchment.cli.")} & files


@pytest.mark.parametrize(
    ("words", "verbs"),
    [
        (["--help"], set()),
        (["--version"], set()),
        (["p4", "compile", "--help"], {"p4"}),
        (["topology", "--help"], {"topology"}),
    ],
)
def test_a_command_line_loads_its_verb_alone(words: list[str], verbs: set[str]) -> None:
    modules = loaded(*words)
    assert verbs_in(modules) == verbs
    for heavy in ("grpc", "numpy", "torch", "scapy", "catchment.sim"):
        assert heavy not in modules


def test_completion_of_verbs_loads_none() -> None:
    modules = loaded(_CATCHMENT_COMPLETE="complete_bash", COMP_WORDS="catchment t", COMP_CWORD="1")
    assert verbs_in(modules) == set()


@pytest.mark.parametrize(
    ("line", "offered"), [("catchment t", ["table", "topology", "traffic"]), ("catchment table l", ["list", "load"])]
)
def test_completion(line: str, offered: list[str]) -> None:
    done = run(
        "from catchment.cli import main; main()",
        _CATCHMENT_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" ")),
    )  # fmt: skip
    assert done.stdout.split() == offered


def test_help_says_what_each_verb_says_of_itself(call: Callable[..., str]) -> None:
    group = typer.main.get_command(app)
    said = " ".join(call("--help").replace("│", " ").split())
    for name, verb in Verbs.verbs.items():
        assert verb.help() == verb.load(name).help
        assert f" {name} {verb.help().splitlines()[0]}"[:40] in said
    assert len(group.list_commands(None)) == len(Verbs.verbs)


def test_an_unknown_verb_is_refused(call: Callable[..., str]) -> None:
    assert "No such command 'tabel'. Did you mean 'table'" in " ".join(call("tabel", code=2).replace("│", " ").split())


def test_the_version_is_the_packages(call: Callable[..., str]) -> None:
    assert call("--version").startswith("catchment 0.")


def test_help_names_each_kind_of_attack(call: Callable[..., str]) -> None:
    said = " ".join(call("traffic", "--help").replace("│", " ").split())
    assert all(kind in said for kind in AttackKind)
    assert "spoofed, generation" in call("traffic", "attacker", "job", "--host", "h", "--kind", "rude", code=2).replace(
        "│", " "
    )
