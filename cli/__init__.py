"""The `catchment` command: a file per group of verbs (docs/reference/cli.md), imported when one of them is called."""

from __future__ import annotations

import errno
import sys
from importlib import metadata
from typing import Annotated, ClassVar

import typer

from catchment.cli.lazy import LazyGroup, Verb
from catchment.controlplane.errors import ControlPlaneError
from catchment.program import keep_files

_PASS_THROUGH = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class Verbs(LazyGroup):
    """All verbs, in the order of `catchment --help`."""

    verbs: ClassVar[dict[str, Verb]] = {
        "p4": Verb("p4"),
        "switch": Verb("switch"),
        "net": Verb("net"),
        "controller": Verb("controller"),
        "job": Verb("job"),
        "table": Verb("table"),
        "fault": Verb("fault"),
        "topology": Verb("topology"),
        "optimizer": Verb("optimizer"),
        "proxy": Verb("proxy"),
        "glm": Verb("glm"),
        "mics": Verb("mics"),
        "rails": Verb("rails"),
        "group": Verb("group", "group_app"),
        "clone": Verb("group", "clone_app"),
        "counter": Verb("counter"),
        "register": Verb("register"),
        "meter": Verb("meter"),
        "stats": Verb("stats", "stats"),
        "diagnose": Verb("stats", "diagnose"),
        "doctor": Verb("doctor", "doctor"),
        "capture": Verb("capture", "capture"),
        "traffic": Verb("traffic", "traffic"),
        "shell": Verb("shell", "shell"),
        "cosim": Verb("cosim", "cosim"),
        "simulate": Verb("simulate", "simulate"),
        "simulate-step": Verb("simulate_step", "simulate_step"),
        "demo": Verb("demo", "demo", _PASS_THROUGH),
    }


app = typer.Typer(
    name="catchment",
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"catchment {metadata.version('catchment')}")
        raise typer.Exit


@app.callback()
def catchment(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Training in the network: switches, jobs and what they count."""


def main() -> None:
    """Run a verb; what an operator can act on is one message and exit code 1."""
    keep_files()
    try:
        app(prog_name="catchment")
    except ControlPlaneError as error:
        print(f"catchment: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:
            raise
        print(f"catchment: cannot write the output: {error.strerror}", file=sys.stderr)
        sys.exit(1)
