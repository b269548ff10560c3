"""Options that are a number of seconds: one bound for all of them, far from where the system's clocks overflow."""

from __future__ import annotations

from typing import Any

import typer

MAX_SECONDS = 1_000_000


def seconds_option(*names: str, help: str, least: float = 0.0) -> Any:  # noqa: A002  the name is typer's
    """The option of a parameter that is a number of seconds, at least `least`; arguments as of `typer.Option`."""
    return typer.Option(*names, help=help, min=least, max=MAX_SECONDS)
