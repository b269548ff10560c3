"""`catchment demo`: train a language model through the switch."""

from __future__ import annotations

import os
import sys

import typer


def demo(context: typer.Context) -> None:
    """Train a language model through a P4 switch in Mininet (`catchment demo --help`)."""
    # The demo is an example above the command: this process becomes it, and imports nothing of it.
    os.execv(sys.executable, [sys.executable, "-m", "catchment.demo", *context.args])
