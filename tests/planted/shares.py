"""Plants listed bugs and prints the share that each tier of tests notices: `make planted COUNT=40 K=rtl/` calls it.

A bug is tried with the cases of its test that are in the quickest tier, then with those of the next. A row that was
noticed before, over the same sources, is not tried again (build/planted; CATCHMENT_FRESH=1 tries all).
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parents[1] / "selection"))

from dependencies import closure, dependencies
from runner import Bug, can_plant, complaint, read_bugs
from tiers import TIERS

from catchment.checkout import ROOT, build_folder

LISTS = sorted(Path(__file__).parent.glob("*.toml"))
NOBODY = "nobody"

Try = Callable[[Bug, str], str]
"""(bug, marks) -> nothing if it was noticed, or what was said."""


@cache
def _needs() -> dict[str, set[str]]:
    return dependencies()


def place(bug: Bug) -> Path:
    """The place of a row's result, named by all that the result depends on, seeds aside."""
    digest = hashlib.sha256(repr(bug).encode())
    for name in sorted(closure(_needs(), f"tests/{bug.test_file}") | {bug.file, "requirements.txt"}):
        digest.update(name.encode() + b"\0" + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return build_folder() / "planted" / digest.hexdigest()


def tiers_of(tests: Sequence[str]) -> dict[str, list[str]]:
    """Tier -> those of `tests`, below tests/, of which it has a case.

    Raises:
        ValueError: pytest could not collect them.
    """
    files = sorted({f"tests/{test.partition('::')[0]}" for test in tests})
    found = {}
    surroundings = {**os.environ, "PYTEST_ADDOPTS": ""}  # a -v of its own changes what is printed
    for tier, marks in TIERS.items():
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-m", marks]
        done = subprocess.run(
            [*command, *files], cwd=ROOT, env=surroundings, capture_output=True, text=True, check=False
        )
        if done.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise ValueError(f"the tests of make {tier} cannot be collected:\n{done.stdout}{done.stderr}")
        cases = [line.removeprefix("tests/") for line in done.stdout.splitlines() if "::" in line]
        found[tier] = [test for test in tests if any(is_case(case, test) for case in cases)]
    return found


def is_case(case: str, test: str) -> bool:
    """Whether pytest's name of a case belongs to a test, which may be a file, a function or one case of it."""
    return case == test or case.startswith((f"{test}::", f"{test}["))


def first_tier(bug: Bug, tiers: dict[str, list[str]], attempt: Try) -> tuple[str, str]:
    """The quickest tier that notices the bug, or nobody; and what the last one said."""
    said = f"no tier has {bug.test}"
    for tier, tests in tiers.items():
        if bug.test in tests:
            said = attempt(bug, TIERS[tier])
            if not said:
                return tier, ""
    return NOBODY, said


def _plant(bug: Bug, marks: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return complaint(bug, Path(folder), marks)


def _known(bug: Bug) -> str:
    path = place(bug)
    return path.read_text() if path.is_file() and not os.environ.get("CATCHMENT_FRESH") else ""


def shares(noticed: Counter[str]) -> list[str]:
    """A line for each tier: how many it notices with all that are quicker."""
    tried, so_far, lines = noticed.total(), 0, []
    for tier in TIERS:
        so_far += noticed[tier]
        lines.append(f"make {tier:10}{so_far:4} of {tried} noticed, {100 * so_far / max(tried, 1):.0f} %")
    return lines


def main(
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=0, help="how many rows, drawn by the seed; 0: all")] = 0,
    part: Annotated[str, typer.Option("-k", help="rows whose file or test has this in its path")] = "",
    seed: Annotated[int, typer.Option(min=1, help="of the draw, and of the tests")] = 1,
) -> None:
    """Plant bugs, and print which tier notices how many; exit code 1 if one is noticed by nobody."""
    bugs = [bug for bug in read_bugs(*LISTS) if part in bug.file or part in bug.test]
    if not bugs or not can_plant():
        sys.exit(f"planted: no row has {part!r} in its path" if not bugs else "planted: mount namespaces need root")
    os.environ["CATCHMENT_SEED"] = str(seed)
    drawn = random.Random(seed).sample(bugs, min(count, len(bugs))) if count else bugs
    tiers = tiers_of([bug.test for bug in drawn])
    noticed: Counter[str] = Counter()
    for bug in drawn:
        said = ""
        if not (tier := _known(bug)):
            tier, said = first_tier(bug, tiers, _plant)
        noticed[tier] += 1
        print(f"{tier:10} {bug} ({bug.test})", flush=True)
        if tier == NOBODY:
            print(said[-2000:], file=sys.stderr, flush=True)
        else:
            place(bug).parent.mkdir(parents=True, exist_ok=True)
            place(bug).write_text(tier)
    print(f"planted: {len(drawn)} of {len(bugs)} rows, seed {seed}", *shares(noticed), sep="\n")
    raise typer.Exit(noticed[NOBODY] > 0)


if __name__ == "__main__":
    typer.run(main)
