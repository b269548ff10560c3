"""How the parts of a job on several rails are labelled, where the control plane describes them to hosts.

The part of a rail has the rail's name; these are the parts beside it.
"""

from __future__ import annotations

CONTROL_SLOTS = 8
"""Vectors in flight of a control part, which carries a record of each rank at a time."""


def control_label(rail: str) -> str:
    """The part on which the ranks agree about rails that fail."""
    return f"{rail}.control"


def spare_label(rail: str, other: str) -> str:
    """The part on `rail` that carries the operations of the rail `other` while that one is broken."""
    return f"{rail}.for.{other}"


def labels_beside(rail: str, rails: tuple[str, ...]) -> dict[str, int | None]:
    """What a rail has beside its own part so that each of `rails` may fail, and with how many slots; None: as many."""
    spares = dict.fromkeys(spare_label(rail, other) for other in rails if other != rail)
    return {control_label(rail): CONTROL_SLOTS, **spares} if spares else {}
