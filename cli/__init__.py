"""The `catchment` command: a file per group of verbs (docs/reference/cli.md), imported when one of them is called."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from importlib import metadata
from typing import Annotated, ClassVar, TextIO

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
    if closed := sys.stdout is None:
        sys.stdout = _closed_output()
    try:
        try:
            app(prog_name="catchment")
        finally:
            sys.stdout.flush()  # what cannot be written is said here, not when the interpreter ends
    except ControlPlaneError as error:
        print(f"catchment: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            print(f"catchment: {error.filename}: {error.strerror}: give a shorter path", file=sys.stderr)
            sys.exit(1)
        if error.errno not in {errno.ENOSPC, *([errno.EBADF] if closed else [])} or error.filename is not None:
            raise
        _discard_output()
        said = "it is closed" if error.errno == errno.EBADF else error.strerror
        print(f"catchment: cannot write the output: {said}", file=sys.stderr)
        sys.exit(1)


def _closed_output() -> TextIO:
    """A standard output in the place of one that is closed, to which nothing can be written.

    Python has none then, and what is printed would be lost without a word, or go to the next file that is opened.
    """
    descriptor = os.open(os.devnull, os.O_RDONLY)
    os.dup2(descriptor, 1)
    if descriptor != 1:
        os.close(descriptor)
    return open(1, "w", encoding="utf-8", closefd=False)


def _discard_output() -> None:
    """Let what is left of the output go nowhere: the interpreter would try once more to write it, at its end."""
    with suppress(OSError, ValueError):  # an output of a test has no descriptor
        descriptor = os.open(os.devnull, os.O_WRONLY)
        os.dup2(descriptor, sys.stdout.fileno())
        os.close(descriptor)
