"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.table import Table

from catchment.json_text import json_text
from catchment.plain_console import plain_console

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json_text(value, indent=2, default=str))


def printable(value: Any) -> str:
    """The text of a value, in which whatever a terminal might obey is written as an escape; line ends stay."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(letter if letter == "\n" or letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; nothing but a remark when it has no rows."""
    print_parts([make_table(title, columns, rows)])


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table | str:
    """A table, or a remark when it has no rows."""
    title = printable(title)
    if not rows:
        return f"{title}: nothing"
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(printable(column), overflow="fold")
    for row in rows:
        table.add_row(*(printable(cell) for cell in row))
    return table


def print_parts(parts: Sequence[Table | str]) -> None:
    """Tables and remarks, one below the other."""
    # A pipe has no width of its own: lines must not be cut there.
    console = plain_console()
    if not console.is_terminal:
        console = plain_console(width=200)
    for part in parts:
        if isinstance(part, str):
            typer.echo(printable(part))
        else:
            console.print(part)
