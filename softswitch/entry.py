"""A table entry as a switch in this process takes and shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Match = int | tuple[int, int]
"""An int for exact and optional, (value, prefix length) for lpm, (value, mask) for ternary, (low, high) for range."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A table entry as read back. `action` is the action's name, or "member 3", "group 7" of a profile."""

    match: Mapping[str, Match]
    action: str
    params: Mapping[str, int]
    priority: int
    counter: tuple[int, int] | None
    """(packets, bytes) of a direct counter."""
    is_const: bool = False
    """Whether the program declares it const, alone or with its list: it can be neither changed nor deleted."""
