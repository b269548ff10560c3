"""The position at which a piece of a P4 program was written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A point of the source text: `file` as the preprocessor names it, `line` and `col` from 1."""

    file: str
    line: int
    col: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


BUILTIN = Location("<built-in>", 0, 0)


NOWHERE = Location("", 0, 0)
"""The place of what no file holds."""
