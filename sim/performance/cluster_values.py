"""Values of a cluster file: each with its unit, or an error with file and line."""

from __future__ import annotations

from collections.abc import Sequence

from catchment.controlplane.documents import Section
from catchment.sim.performance.models import LONGEST, PICOS_PER_SECOND
from catchment.sim.performance.quantities import MOST, Dimension, quantity

Bounds = tuple[float, float]
_MOST_BYTES = 1 << 60
_SLOWEST = 8 * 10**8
"""The time of a byte at 0.01 Mb/s, in ps."""


def quantity_at(
    section: Section, key: str, dimension: Dimension, default: float | None, bounds: Bounds = (0, MOST)
) -> float:
    """A quantity with a unit; without a default it must be there.

    Args:
        bounds: the least and the most that it may be, in the inner unit of its dimension.

    Raises:
        DocumentError: it is none, or out of bounds; with file and line.
    """
    if key not in section and default is not None:
        return default
    try:
        value = quantity(section.text(key), dimension)
    except ValueError as error:
        raise section.error_at(key, str(error)) from None
    if not bounds[0] <= value <= bounds[1]:
        unit, worth = next(iter(dimension.units.items()))
        low, high = (f"{bound / worth:g}{unit}" for bound in bounds)
        raise section.error_at(key, f"{section.text(key)} is not between {low} and {high}")
    return value


def time_at(section: Section, key: str, default: int | None) -> int:
    """A time in whole ps, as long as a simulation at most; errors as of `quantity_at`."""
    return round(quantity_at(section, key, Dimension.TIME, default, (0, LONGEST)))


def bytes_at(section: Section, key: str, default: int) -> int:
    """A number of bytes from 1; errors as of `quantity_at`."""
    return round(quantity_at(section, key, Dimension.SIZE, default, (1, _MOST_BYTES)))


def speed_at(section: Section, key: str, dimension: Dimension, default: float) -> float:
    """A rate or a speed, which takes something on; errors as of `quantity_at`."""
    least = next(iter(dimension.units.values())) / 1000
    return quantity_at(section, key, dimension, default, (least, MOST))


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
    if not 1 <= picos <= _SLOWEST or abs(picos - round(picos)) > 1e-9:
        raise section.error_at(key, "give a rate at which a byte takes whole picoseconds, as 25, 100, 400 or 800gbps")
    return round(picos)


def some(names: Sequence[str]) -> str:
    """The first of many names."""
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
