"""Several things that callers give in an order, such as one for each rank."""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Set
from typing import Any


def in_order(given: Any) -> list[Any] | None:
    """All that a list, a tuple, a range, an array, a view of a dict or a generator has.

    Returns:
        None: it is nothing of the kind; a text, a mapping and a set, which has no order, are none.
    """
    if isinstance(given, str | bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        return None
    if isinstance(given, Set) and not isinstance(given, KeysView):
        return None
    try:
        several = iter(given)
    except TypeError:  # an array of no dimensions
        return None
    return list(several)
