"""A console for text that others have written."""

from __future__ import annotations

from rich.console import Console


def plain_console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints what it is given: brackets and colons of members, paths and programs are no markup."""
    return Console(stderr=stderr, width=width, markup=False, emoji=False)
