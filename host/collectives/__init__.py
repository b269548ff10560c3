"""Collective operations through the switch: all_reduce, reduce, broadcast, barrier, reduce_scatter, all_gather."""

from __future__ import annotations

from host.collectives.communicator import Communicator
from host.collectives.errors import CollectiveError
from host.collectives.scaling import Block, Delayed, Fixed, Scaling
from host.collectives.work import Work, WorkStatistics

__all__ = ["Block", "CollectiveError", "Communicator", "Delayed", "Fixed", "Scaling", "Work", "WorkStatistics"]
