"""Annotations, which types and IR nodes carry alike."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.softswitch.compiler.source import NOWHERE, Location

ConstantValue = int | bool | str


@dataclass(frozen=True, slots=True)
class Annotation:
    """`@name`, `@name(values...)` or `@name[key=value, ...]`; `text` is the body, token by token."""

    name: str
    values: tuple[ConstantValue, ...] = ()
    pairs: tuple[tuple[str, ConstantValue], ...] = ()
    text: str = ""
    structured: bool = False
    """Whether it was written with `[...]`."""
    loc: Location = field(default=NOWHERE, compare=False)
