"""What people define for the preprocessor of a P4 program."""

from __future__ import annotations

from typing import Annotated

import typer

DefineOption = Annotated[
    list[str] | None, typer.Option("--define", "-D", help="NAME=VALUE for the preprocessor; NAME alone is 1.")
]


def definitions(define: list[str] | None) -> dict[str, str]:
    """Macro names and their text."""
    from catchment.softswitch.compiler import preprocess  # noqa: PLC0415  only the verbs of programs need the compiler

    try:
        return preprocess.definitions(define or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--define") from None
