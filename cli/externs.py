"""`--externs`: files that implement the externs that a program declares itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from catchment.controlplane.errors import ControlPlaneError

ExternsOption = Annotated[
    list[Path] | None,
    typer.Option("--externs", help="Implements the program's own externs: a .hpp to compile, a .py to interpret."),
]


def extern_files(given: Sequence[Path] | None, suffixes: Sequence[str]) -> list[Path]:
    """The files, at most one of each suffix.

    Raises:
        ControlPlaneError: one is missing, given twice, or of another kind.
    """
    files = list(given or ())
    for file in files:
        if file.suffix not in suffixes:
            raise ControlPlaneError(f"--externs {file}: not a {' or '.join(suffixes)} file")
        if not file.is_file():
            raise ControlPlaneError(f"--externs {file}: no such file")
        if sum(other.suffix == file.suffix for other in files) > 1:
            raise ControlPlaneError(f"--externs: one {file.suffix} file can be given")
    return files
