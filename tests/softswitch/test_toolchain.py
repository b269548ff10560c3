"""A C++ compiler that cannot be used: the error names the variable that names it, what is wrong, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from catchment.controlplane.programs.cache import compile_for
from catchment.controlplane.programs.compilation import CompileError
from catchment.controlplane.topology import Target
from catchment.softswitch.build import build
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.toolchain import flags, toolchain

PROGRAM = Path(__file__).parent / "runtime" / "pairs.p4"
ADVICE = r"set CXX to the path of a C\+\+ compiler"


@pytest.fixture(autouse=True)
def _asked_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one test finds out about its compiler is nothing to the next one."""
    monkeypatch.setattr("catchment.softswitch.build.toolchain", toolchain.__wrapped__)


def compiler(folder: Path, *does: str) -> Path:
    """A program that answers --version as compilers do, and anything else by what is given."""
    script = folder / "compiler"
    script.write_text("\n".join(["#!/bin/sh", 'if [ "$1" = --version ]; then echo 12.2.0; exit; fi', *does]) + "\n")
    script.chmod(0o755)
    return script


def refusal(folder: Path) -> str:
    with pytest.raises(SwitchError) as refused:
        build(PROGRAM, cache_dir=folder / "cache")
    return str(refused.value)


def test_one_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent")
    with pytest.raises(CompileError, match=rf"CXX=/nonexistent cannot be run: No such file.*; {ADVICE}") as refused:
        compile_for(Target.EMBEDDED, PROGRAM, {}, folder=tmp_path)
    assert "Traceback" not in str(refused.value)


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (["echo what is -shared? >&2", "exit 2"], "what is -shared?"),
        (["exit 0"], "it ended with 0, and wrote nothing"),
    ],
)
def test_one_that_compiles_nothing(does: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(compiler(tmp_path, *does)))
    told = refusal(tmp_path)
    assert told.startswith(f"CXX={tmp_path}/compiler does not even compile an empty file with -std=c++20 -O3 ")
    assert "; set CXX to the path of a C++ compiler" in told and told.endswith(said)


def test_one_that_knows_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "false")
    assert refusal(tmp_path).startswith("CXX=false is no C++ compiler: it refuses --version; set CXX to ")


@pytest.mark.parametrize("given", ["bogus", "\udcff"], ids=["text", "a byte that is none"])
def test_processors_that_it_does_not_know(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_MARCH", given)
    told = refusal(tmp_path)
    assert told.startswith(f"CATCHMENT_MARCH={given}: ")
    assert "give a value of its -march, as x86-64-v3, or unset it" in told and "bug" not in told


def test_one_that_does_not_know_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = 'case "$*" in *-march=*) echo no -march >&2; exit 1;; esac'
    made = 'while [ "$1" != -o ]; do shift; done; : > "$2"'
    monkeypatch.setenv("CXX", str(compiler(tmp_path, plain, made)))
    monkeypatch.delenv("CATCHMENT_MARCH", raising=False)
    assert "does not take -march=native: set CATCHMENT_MARCH to a value that it takes" in refusal(tmp_path)


def test_an_empty_variable_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_MARCH", "")
    assert "-march=native" in flags()


def test_what_is_wrong_with_the_program_stays_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that compiles an empty file is not at fault."""
    program = 'case "$*" in *pairs*) echo oh >&2; exit 1;; esac'
    made = 'while [ "$1" != -o ]; do shift; done; : > "$2"'
    monkeypatch.setenv("CXX", str(compiler(tmp_path, program, made)))
    told = refusal(tmp_path)
    assert "(a bug in the P4 compiler):\noh" in told and os.environ["CXX"] not in told


def test_each_kind_of_processors_has_a_library_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that machines share has instructions that only some of them know."""
    monkeypatch.setenv("CXX", str(compiler(tmp_path, 'for last; do :; done; echo > "$last"')))
    made = []
    for kind in ["native-0123", "native-4567", "native-0123"]:
        monkeypatch.setattr("catchment.softswitch.build.processors", lambda kind=kind: kind)
        made.append(build(PROGRAM, cache_dir=tmp_path / "cache").shared_object)
    assert made[0] == made[2] != made[1]
    assert all(library.exists() for library in made)
