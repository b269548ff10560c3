"""Runs Spin over one model: generate the verifier, compile it, search, read its verdict."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from catchment.sim.protocol.cases import Case

MODELS = Path(__file__).with_name("models")
_LIMITS = ["-DVECTORSZ=4096", "-DMEMLIM=4000", "-DCOLLAPSE", "-DNOCLAIM"]


class SpinError(RuntimeError):
    """Spin, its compiler or its search did not come to a verdict."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a search; `trail` is the counterexample, one event a line, empty if there is none."""

    case: Case
    states: int
    errors: int
    trail: str

    @property
    def as_expected(self) -> bool:
        return (self.errors == 0) == self.case.holds


def _run(argv: list[str], directory: Path, timeout: float) -> str:
    try:
        done = subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError as error:
        raise SpinError(f"{argv[0]} is not installed: run `make setup`") from error
    except subprocess.TimeoutExpired as error:
        raise SpinError(f"{' '.join(argv)}: no verdict within {timeout:.0f} s") from error
    if done.returncode != 0:
        raise SpinError(f"{' '.join(argv)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(case: Case, timeout: float = 300.0) -> Verdict:
    """Search the whole state space of `case`.  Raises SpinError when there is no verdict."""
    defines = [f"-D{name}={value}" for name, value in case.defines.items()]
    kind = ["-DNP"] if case.search == "np" else ["-DSAFETY"]
    with tempfile.TemporaryDirectory(prefix="catchment-spin-") as name:
        directory = Path(name)
        shutil.copy(MODELS / case.model, directory)
        _run(["spin", *defines, "-a", case.model], directory, timeout)
        # Most searches are shorter than what a compiler would take to make them quicker.
        _run(["gcc", "-O0", "-w", *kind, *_LIMITS, "-o", "pan", "pan.c"], directory, timeout)
        output = _run(["./pan", "-m2000000", *(["-l"] if case.search == "np" else [])], directory, timeout)
        errors = re.search(r"errors: (\d+)", output)
        states = re.search(r"(\d+) states, stored", output)
        if errors is None or states is None:
            raise SpinError(f"{case.name}: cannot read the verdict in:\n{output}")
        found = int(errors[1])
        if found == 0 and re.search("out of memory|max search depth too small|Search not completed", output):
            raise SpinError(f"{case.name}: the search did not cover every state:\n{output}")
        trail = _run(["spin", *defines, "-t", case.model], directory, timeout) if found else ""
    return Verdict(case, int(states[1]), found, trail)
