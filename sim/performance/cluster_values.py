"""Values of a cluster file: each with its unit, or an error with file and line."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.documents import Section
from catchment.sim.performance.models import PICOS_PER_SECOND
from catchment.sim.performance.quantities import Dimension, quantity


def quantity_at(section: Section, key: str, dimension: Dimension, default: float | None) -> float:
    """A quantity with a unit; without a default it must be there.

    Raises:
        DocumentError: it is none; with file and line.
    """
    if key not in section and default is not None:
        return default
    try:
        return quantity(section.text(key), dimension)
    except ValueError as error:
        raise section.error_at(key, str(error)) from None


def number_at(section: Section, key: str, default: float, low: float, high: float) -> float:
    """A number between two others; errors as of `quantity_at`."""
    if key not in section:
        return default
    text = section.text(key)
    try:
        value = float(text)
    except ValueError:
        raise section.error_at(key, f"{text} is not a number") from None
    if not low <= value <= high:
        raise section.error_at(key, f"{text} is not between {low:g} and {high:g}")
    return value


def byte_time(section: Section | None, key: str, default: int) -> int:
    """The time of a byte at a rate, in ps; errors as of `quantity_at`."""
    if section is None or key not in section:
        return default
    rate = quantity_at(section, key, Dimension.BIT_RATE, 0)
    picos = 8 * PICOS_PER_SECOND / rate if rate > 0 else 0
    if picos < 1 or abs(picos - round(picos)) > 1e-9:
        raise section.error_at(key, "give a rate at which a byte takes whole picoseconds, as 25, 100, 400 or 800gbps")
    return round(picos)


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
