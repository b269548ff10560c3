"""Which page of the reference is written by what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catchment.cli.reference import c_api, commands, tables

PAGES: Final[dict[str, Callable[[], str]]] = {
    "c.md": c_api.render,
    "commands.md": commands.render,
    "tables.md": tables.render,
}
