"""Runs tests many times, under load and with another seed each time, and names which were not always green.

`make test-repeat N=20 K=expression PATHS=tests/host` calls it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from xml.etree import ElementTree

import typer

ROOT = Path(__file__).resolve().parents[2]
_NOTHING_SELECTED = 5  # pytest's exit code
_RAN = (0, 1)  # pytest's exit codes of a run that came to its end


class RepeatError(Exception):
    """The selection could not be run: what pytest said."""


@dataclass
class Record:
    """What became of one test.

    Attributes:
        runs: rounds in which it ran and was not skipped. failed: seeds of the rounds in which it failed.
    """

    runs: int = 0
    failed: list[int] = field(default_factory=list)


def outcomes(report: Path) -> Iterator[tuple[str, bool]]:
    """Each test that ran, and whether it passed, from pytest's JUnit file; skipped tests are left out."""
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("skipped") is None:
            failed = case.find("failure") is not None or case.find("error") is not None
            yield f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}", not failed


@contextmanager
def load(processes: int) -> Iterator[None]:
    """Busy loops beside what is in the block."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
            one.wait()


def run_round(selection: list[str], seed: int, side_by_side: int) -> tuple[list[tuple[str, bool]], str]:
    """One run of pytest: what became of each test, and what pytest printed.

    Raises:
        RepeatError: nothing was selected, or the run did not come to its end.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(side_by_side), "--dist", "loadfile"]
        done = subprocess.run(
            [*command, f"--junitxml={report}", *selection],
            cwd=ROOT,
            env={**os.environ, "CATCHMENT_SEED": str(seed)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == _NOTHING_SELECTED:
            raise RepeatError(f"no test is selected by {' '.join(selection)}")
        if done.returncode not in _RAN:
            raise RepeatError(f"pytest ended with {done.returncode} (seed {seed}):\n{done.stdout}{done.stderr}")
        return list(outcomes(report)), done.stdout


def main(
    paths: Annotated[list[str] | None, typer.Argument(help="files or folders of tests; all of tests/ if none")] = None,
    *,
    rounds: Annotated[int, typer.Option("--rounds", "-n", min=1, help="how often the selection runs")] = 20,
    expression: Annotated[str, typer.Option("-k", help="pytest's expression over names")] = "",
    marks: Annotated[str, typer.Option("-m", help="pytest's expression over marks")] = "not slow",
    busy: Annotated[int, typer.Option(min=0, help="busy loops beside the tests")] = os.cpu_count() or 1,
    side_by_side: Annotated[int, typer.Option(min=1, help="processes that run tests")] = 2,
    seed: Annotated[int, typer.Option(min=1, help="the first round's seed; each round adds one")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print the table as JSON")] = False,
) -> None:
    """Run tests again and again, and print which were not always green; exit code 1 if any was not."""
    selection = ["-m", marks, *(["-k", expression] if expression else []), *(paths or ["tests"])]
    records: dict[str, Record] = {}
    with load(busy):
        for number in range(rounds):
            start = time.monotonic()
            try:
                results, said = run_round(selection, seed + number, side_by_side)
            except RepeatError as error:
                print(f"test-repeat: {error}", file=sys.stderr)
                raise typer.Exit(2) from error
            for name, passed in results:
                record = records.setdefault(name, Record())
                record.runs += 1
                record.failed += [] if passed else [seed + number]
            wrong = sum(not passed for _, passed in results)
            took = time.monotonic() - start
            progress = f"round {number + 1} of {rounds}, seed {seed + number}: {len(results)} ran, {wrong} failed"
            print(f"{progress}, {took:.0f} s", file=sys.stderr, flush=True)
            if wrong:
                print(said, file=sys.stderr, flush=True)
    flaky = {name: record for name, record in sorted(records.items()) if record.failed}
    if as_json:
        print(json.dumps({name: {"runs": r.runs, "failed_seeds": r.failed} for name, r in flaky.items()}))
    else:
        print(f"{len(records)} tests, {rounds} rounds: {len(flaky)} not always green")
        for name, r in flaky.items():
            print(f"  {len(r.failed)} of {r.runs}  {name}  seeds {', '.join(map(str, r.failed))}")
    if flaky:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
