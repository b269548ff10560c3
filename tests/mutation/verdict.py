"""Says whether tests notice a mutant of a module: a forked process runs them with the mutant in the module's place.

No file changes. The process that forks holds the libraries that tests import, so that a verdict costs little more than
its tests; it must hold nothing that imports the module.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest


class Verdict(StrEnum):
    """What became of a mutant."""

    NOTICED = "noticed"
    ENDLESS = "noticed, by its time"
    SURVIVED = "survived"
    UNBUILT = "not built, and not counted"


@dataclass(frozen=True, slots=True)
class Trial:
    """What the tests said about a source: the verdict, and the end of what they printed."""

    verdict: Verdict
    printed: str


def try_source(file: Path, source: str, tests: list[str], seconds: float) -> Trial:
    """Run the tests with `source` in place of the file's text, for at most `seconds`."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            try:
                os._exit(_run(file.resolve(), source, tests, output.fileno()))
            finally:
                os._exit(70)
        verdict = _wait(child, time.monotonic() + seconds)
        output.seek(max(0, output.seek(0, os.SEEK_END) - 2000))
        return Trial(verdict, output.read().decode(errors="replace"))


def _wait(child: int, until: float) -> Verdict:
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return Verdict.SURVIVED if os.waitstatus_to_exitcode(status) == 0 else Verdict.NOTICED
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return Verdict.ENDLESS


def _run(file: Path, source: str, tests: list[str], output: int) -> int:
    os.setpgid(0, 0)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.dont_write_bytecode = True
    read_code = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
        if Path(loader.path).resolve() == file:
            return compile(source, loader.path, "exec", dont_inherit=True)
        return read_code(loader, fullname)

    SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]
    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests]))
