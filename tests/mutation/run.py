"""Mutates the pure modules and says what their tests do not notice: `make mutants [K=path] [MUTANTS=40]`.

cosmic-ray and universalmutator make the mutants (mutants.py); each is tried by the tests that modules.toml names: one
of Python in a forked process (verdict.py), one of C++ in a build of its own (native.py). A mutant that does what its
module does is listed there with the reason, and is not tried.
"""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from native import MutationError, try_native
from rich.progress import Progress
from verdict import Verdict, try_source

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("modules.toml")
_SLOWER = 5  # a mutant that takes so many times the module's own time is endless
_START = 20.0  # seconds that a loaded machine may add


@dataclass(frozen=True, slots=True)
class Module:
    """A row of modules.toml.

    Attributes:
        file: below the root. tests: files or tests that must notice, below the root.
        same: line, what it becomes, why that is the same; lines without the spaces around them.
        targets: of CMake, that the tests need, where the module is C++.
    """

    file: str
    tests: tuple[str, ...]
    same: tuple[tuple[str, str, str], ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no test noticed.

    Attributes:
        file: of the module. number: of the line, from 1. line: as it is. becomes: as it is in the mutant.
    """

    file: str
    number: int
    line: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.line}\n    -> {self.becomes}"


@dataclass(frozen=True, slots=True)
class Score:
    """What became of a module's mutants: how many were tried, and those that survived."""

    file: str
    mutants: int
    survivors: list[Survivor]

    @property
    def noticed(self) -> int:
        return self.mutants - len(self.survivors)


def read_modules(path: Path = LIST) -> list[Module]:
    """The rows of the list."""
    return [
        Module(
            row["file"],
            tuple(row["tests"]),
            tuple((s["line"], s["becomes"], s["why"]) for s in row.get("same", ())),
            tuple(row.get("targets", ())),
        )
        for row in tomllib.loads(path.read_text("utf-8"))["module"]
    ]


def change(module: Module, source: str) -> Survivor:
    """What a mutant changes: its first line that differs."""
    pairs = zip((ROOT / module.file).read_text("utf-8").splitlines(), source.splitlines(), strict=False)
    number, line, becomes = next((n, a.strip(), b.strip()) for n, (a, b) in enumerate(pairs, 1) if a != b)
    return Survivor(module.file, number, line, becomes)


def mutants(module: Module, count: int, seed: int) -> list[str]:
    """Mutants of a module, at most `count`: their sources, without those that the list says are the same."""
    tool = ROOT / ".venv" / "mutation" / "bin" / "python"
    if not tool.exists():
        raise MutationError(f"{tool} is not there: run `make mutants`, which installs it")
    command = [str(tool), str(Path(__file__).with_name("mutants.py")), module.file, str(count), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MutationError(f"{module.file}: no mutants: {done.stderr.strip()}")
    same = {(line, becomes) for line, becomes, _ in module.same}
    changes = {row["source"]: change(module, row["source"]) for row in json.loads(done.stdout)}
    return [source for source, at in changes.items() if (at.line, at.becomes) not in same]


def try_module(module: Module, sources: list[str]) -> Iterator[tuple[str, Verdict]]:
    """The verdict on each mutant, as they come.

    Raises:
        MutationError: the tests fail on the module as it is.
    """
    if module.targets:
        yield from try_native(module.file, module.tests, module.targets, sources)
        return
    file, tests = ROOT / module.file, [str(ROOT / test) for test in module.tests]
    began = time.monotonic()
    as_it_is = try_source(file, file.read_text("utf-8"), tests, 600)
    if as_it_is.verdict is not Verdict.SURVIVED:
        raise MutationError(f"{module.file}: its tests fail on it as it is:\n{as_it_is.printed}")
    limit = _START + _SLOWER * (time.monotonic() - began)
    with ThreadPoolExecutor(2) as two:
        trials = two.map(lambda source: try_source(file, source, tests, limit), sources)
        for source, trial in zip(sources, trials, strict=True):
            yield source, trial.verdict


def _hold_libraries() -> None:
    """Import what tests import, but nothing of this project."""
    for name in ("google.protobuf", "grpc", "hypothesis", "numpy", "yaml"):
        importlib.import_module(name)


def main(
    *,
    only: Annotated[str, typer.Option("-k", help="Modules whose path holds this.")] = "",
    count: Annotated[int, typer.Option("-n", min=1, help="Mutants a module, drawn.")] = 40,
    seed: Annotated[int | None, typer.Option(help="What the mutants are drawn with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Mutate the pure modules; the exit code is 1 if a mutant survives that the list does not explain."""
    modules = [module for module in read_modules() if only in module.file]
    if not modules:
        raise MutationError(f"no module of {LIST.name} has {only!r} in its path")
    seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
    _hold_libraries()
    scores = []
    with Progress(disable=as_json) as progress:
        for module in modules:
            sources = mutants(module, count, seed)
            trials = progress.track(try_module(module, sources), len(sources), description=module.file)
            built = [(source, said) for source, said in trials if said is not Verdict.UNBUILT]
            left = [change(module, source) for source, said in built if said is Verdict.SURVIVED]
            scores.append(Score(module.file, len(built), left))
    if as_json:
        print(json.dumps({"seed": seed, "modules": [asdict(score) for score in scores]}))
    else:
        _print(scores, seed)
    raise typer.Exit(any(score.survivors for score in scores))


def _print(scores: list[Score], seed: int) -> None:
    for score in scores:
        print(f"{score.noticed:5} of {score.mutants:3}  {score.file}")
        for survivor in score.survivors:
            print(f"survived: {survivor}")
    noticed, tried = sum(score.noticed for score in scores), sum(score.mutants for score in scores)
    print(f"mutants: {noticed} of {tried} noticed, seed {seed}")


if __name__ == "__main__":
    try:
        typer.run(main)
    except MutationError as error:
        sys.exit(f"mutants: {error}")
