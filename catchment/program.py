"""Runs a function as a program: parameters are its options, the docstring is its help, the result its exit status."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any, NoReturn, TypeVar

import typer

T = TypeVar("T")

_USUAL_UMASK = 0o022


def keep_files() -> None:
    """Let nobody else write the files of this program where its umask, as many a daemon's, keeps nothing from anybody.

    Others could change jobs, programs that are loaded, and processes that are ended by their number.
    """
    if before := os.umask(_USUAL_UMASK):
        os.umask(before)


def run_program(
    function: Callable[..., int | None], arguments: Sequence[str] | None = None, *, name: str | None = None
) -> NoReturn:
    """Call `function` with what the command line (or `arguments`) says, and end with its result.

    Raises:
        SystemExit: always, with the exit status; 2, and a message, for wrong options.
    """
    keep_files()
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

    @app.command(context_settings={"help_option_names": ["-h", "--help"]})
    @wraps(function)
    def call(*values: Any, **options: Any) -> NoReturn:
        raise typer.Exit(function(*values, **options) or 0)

    app(args=arguments, prog_name=name)
    raise AssertionError("a program ends by itself")


def one_of(choices: Collection[object]) -> Callable[[T], T]:
    """Callback of an option that has to be one of `choices`; of a repeatable one, each time."""

    def checked(value: T) -> T:
        for given in value if isinstance(value, list) else [value]:
            if given not in choices:
                raise typer.BadParameter(f"{given!r} is not one of: {', '.join(map(str, choices))}")
        return value

    return checked
