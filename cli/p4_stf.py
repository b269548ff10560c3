"""`catchment p4 stf`: packet tests of a program on the embedded switch, in this process."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli.definitions import DefineOption, IncludeOption, definitions, include_folders
from catchment.cli.externs import ExternsOption, extern_files
from catchment.cli.output import JsonOption, print_json, print_table
from catchment.controlplane.errors import ControlPlaneError

if TYPE_CHECKING:
    from catchment.softswitch.stf import Outcome


def stf(
    program: Annotated[Path, typer.Argument(help="A P4_16 program; or a folder of programs, each beside its tests.")],
    test: Annotated[Path | None, typer.Argument(help="The test; without it PROGRAM's own, PROGRAM.stf.")] = None,
    *,
    include: IncludeOption = None,
    define: DefineOption = None,
    interpret: Annotated[
        bool, typer.Option("--interpret", help="Interpret the program; no C++ compiler is run.")
    ] = False,
    both: Annotated[
        bool, typer.Option("--both", help="Compile and interpret it: both must send the same frames.")
    ] = False,
    max_steps: Annotated[
        int | None, typer.Option(help="Rounds of loops that a packet may take before it is dropped.", min=1)
    ] = None,
    externs: ExternsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run p4c's packet tests (STF). Succeeds only if every expectation holds and nothing else came out.

    What the program logs, and packets whose loops take too many rounds, are told on stderr.
    """
    from catchment.softswitch.stf import Engine, Setting, find_tests, run_test  # noqa: PLC0415  only this verb runs it

    if interpret and both:
        raise ControlPlaneError("--interpret and --both: give one of them")
    if not program.exists():
        raise ControlPlaneError(f"no P4 program at {program}")
    if test is not None and (test.is_dir() or not test.exists()):
        said = f"{test} is a folder, no test" if test.is_dir() else f"no test at {test}"
        raise ControlPlaneError(f"{said}: give a .stf file, or none to run those beside {program}")
    setting = Setting(
        include_folders(include),
        definitions(define),
        Engine.BOTH if both else Engine.INTERPRETED if interpret else Engine.COMPILED,
        externs=extern_files(externs, (".hpp", ".py")),
        on_log=lambda line: typer.echo(line, err=True),
    )
    if max_steps is not None:
        setting = replace(setting, max_steps=max_steps)
    pairs = [(program, test)] if test is not None else find_tests(program)
    if not pairs:
        raise ControlPlaneError(f"no test (.stf) beside {program}; name one")
    outcomes = [run_test(p, t, setting) for p, t in pairs]
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
