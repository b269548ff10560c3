"""`catchment p4 stf`: packet tests of a program on the embedded switch, in this process."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from controlplane.cli.output import JsonOption, print_json, print_table
from softswitch.stf import Outcome, find_tests, run_test


def stf(
    program: Annotated[Path, typer.Argument(help="A P4_16 program; or a folder of programs, each beside its tests.")],
    test: Annotated[Path | None, typer.Argument(help="The test; without it PROGRAM's own, PROGRAM.stf.")] = None,
    include: Annotated[list[Path] | None, typer.Option("--include", "-I", help="Where #include looks.")] = None,
    define: Annotated[list[str] | None, typer.Option("--define", "-D", help="NAME=VALUE for the preprocessor.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run p4c's packet tests (STF). Succeeds only if every expectation holds and nothing else came out."""
    defines = dict(text.partition("=")[::2] for text in define or [])
    pairs = [(program, test)] if test is not None else find_tests(program)
    if not pairs:
        raise typer.BadParameter(f"{program}: no test beside a program of its name")
    outcomes = [run_test(p, t, include or [], defines) for p, t in pairs]
    if as_json:
        print_json([asdict(outcome) for outcome in outcomes])
    elif program.is_dir():
        rows = [
            (o.program.name, o.test.name, o.result, f"{o.seconds:.1f} s", "; ".join(o.reasons[:1])) for o in outcomes
        ]
        print_table(str(program), ("program", "test", "result", "time", "why"), [(*row, "")[:5] for row in rows])
    else:
        _print(outcomes)
    if any(outcome.result != "passed" for outcome in outcomes):
        raise typer.Exit(1)


def _print(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        for line in outcome.reasons:
            typer.echo(line, err=True)
        typer.echo(f"{outcome.test}: {outcome.result}")
