"""`catchment demo`: train a language model through the switch."""

from __future__ import annotations

import sys

import typer

PASS_THROUGH = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def demo(context: typer.Context) -> None:
    """Train a language model through a P4 switch in Mininet (`catchment demo --help`)."""
    from catchment.demo.__main__ import main  # noqa: PLC0415  torch takes seconds to import

    sys.exit(main(context.args))
