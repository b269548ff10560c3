"""Compile a program for the embedded switch."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from google.protobuf import text_format

from catchment.program import run_program
from catchment.softswitch.build import build
from catchment.softswitch.command_line import DefinesOption, IncludeOption
from catchment.softswitch.compiler.diagnostics import CompileError
from catchment.softswitch.compiler.preprocess import definitions
from catchment.softswitch.errors import SwitchError


def main(
    program: Path,
    *,
    defines: DefinesOption = None,
    include_dirs: IncludeOption = None,
    p4info: Annotated[Path, typer.Option(help="Takes the P4Info, as text.")],
    output: Annotated[Path, typer.Option(help="Takes the shared object.")],
    externs: Annotated[
        Path | None, typer.Option(help="A C++ header with the externs that the program declares itself.")
    ] = None,
) -> int:
    """Compile a program for the embedded switch; errors go to stderr with their place in the source."""
    try:
        macros = definitions(defines or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="-D") from None
    try:
        built = build(program, include_dirs or (), macros, externs=externs)
    except (CompileError, SwitchError) as error:
        print(error, file=sys.stderr)
        return 1
    for warning in built.warnings:
        print(warning, file=sys.stderr)
    p4info.write_text(text_format.MessageToString(built.p4info), encoding="utf-8")
    shutil.copyfile(built.shared_object, output)
    return 0


if __name__ == "__main__":
    run_program(main)
