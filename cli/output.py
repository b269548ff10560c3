"""Printing: tables for people, JSON for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from catchment.json_text import json_text

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(json_text(value, indent=2, default=str))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; nothing but a remark when it has no rows."""
    print_parts([make_table(title, columns, rows)])


def make_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table | str:
    """A table, or a remark when it has no rows."""
    if not rows:
        return f"{title}: nothing"
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    return table


def print_parts(parts: Sequence[Table | str]) -> None:
    """Tables and remarks, one below the other."""
    # A pipe has no width of its own: lines must not be cut there.
    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    for part in parts:
        if isinstance(part, str):
            typer.echo(part)
        else:
            console.print(part)
