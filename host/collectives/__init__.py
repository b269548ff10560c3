"""Collective operations through the switch: all_reduce, reduce, broadcast, barrier, reduce_scatter, all_gather."""

from __future__ import annotations

from catchment.host.collectives.communicator import ABSENT, Communicator
from catchment.host.collectives.errors import CollectiveError
from catchment.host.collectives.rail_parts import Rail, RailPart
from catchment.host.collectives.rail_set import RailHealth, RailSet, RailState
from catchment.host.collectives.rail_split import RailCost, RailPolicy
from catchment.host.collectives.scaling import Block, Delayed, Fixed, Scaling, Whole
from catchment.host.collectives.strided import Strided
from catchment.host.collectives.work import Work, WorkStatistics

__all__ = [
    "ABSENT",
    "Block",
    "CollectiveError",
    "Communicator",
    "Delayed",
    "Fixed",
    "Rail",
    "RailCost",
    "RailHealth",
    "RailPart",
    "RailPolicy",
    "RailSet",
    "RailState",
    "Scaling",
    "Strided",
    "Whole",
    "Work",
    "WorkStatistics",
]
