"""What people tell the preprocessor of a P4 program: what it defines, and where it looks for files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from catchment.controlplane.errors import ControlPlaneError

DefineOption = Annotated[
    list[str] | None, typer.Option("--define", "-D", help="NAME=VALUE for the preprocessor; NAME alone is 1.")
]


IncludeOption = Annotated[list[Path] | None, typer.Option("--include", "-I", help="Where #include looks.")]


def include_folders(given: Sequence[Path] | None) -> list[Path]:
    """The folders of `--include`.

    Raises:
        ControlPlaneError: one is no folder.
    """
    for folder in given or ():
        if not folder.is_dir():
            raise ControlPlaneError(f"--include {folder}: no such folder")
    return list(given or ())


def definitions(define: list[str] | None) -> dict[str, str]:
    """Macro names and their text."""
    from catchment.softswitch.compiler import preprocess  # noqa: PLC0415  only the verbs of programs need the compiler

    try:
        return preprocess.definitions(define or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--define") from None
