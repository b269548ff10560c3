"""Lines for tests of protocols: times in hops, and faults of all severities."""

from __future__ import annotations

import random

from catchment.sim.world import Faults

HOP = 1_000_000
"""A hop, in picoseconds of the world: the unit in which the hosts of these tests think."""


def line_faults(*, loss: float = 0.0, duplicate: float = 0.0, tail: float = 1.0) -> Faults:
    """Any frame takes up to a hop more, and one in five up to three times `tail` hops, so that others pass it."""
    return Faults(loss=loss, duplicate=duplicate, reorder=0.2, delay=round(3 * tail * HOP), jitter=HOP)


def some_line_faults(rng: random.Random) -> Faults:
    """Faults from none but delays to nearly every frame."""
    loss, duplicate = rng.choice([0, 0.01, 0.1, 0.3]), rng.choice([0, 0.1, 0.3])
    return line_faults(loss=loss, duplicate=duplicate, tail=rng.choice([1, 10, 80]))
