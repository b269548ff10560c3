"""All pictures, by the names of their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from catchment.demo.pictures import gather
from catchment.demo.pictures.exchanges import heartbeat_minimum, slot_over_time

PICTURES: Final[dict[str, Callable[[], str]]] = {
    "slot-over-time": lambda: slot_over_time().svg(),
    "heartbeat-minimum": lambda: heartbeat_minimum().svg(),
    "stages-of-a-gather": gather.draw,
}
