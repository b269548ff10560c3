"""Several tensors in one operation of a communicator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from catchment.host.collectives import Communicator, Work

Arguments = tuple[torch.Tensor, ...]
"""Flat tensors of one type that a call gets, the source first."""


def start_together(
    communicator: Communicator,
    name: str,
    calls: Sequence[Arguments],
    reduced: Mapping[str, Any],
    timeout: float | None,
) -> tuple[list[Work], list[Callable[[], None]]]:
    """Start several calls of one method, those that can be coalesced as one operation.

    Args:
        communicator: of the group.
        name: of the method: all_reduce, reduce_scatter, or all_gather.
        calls: what it is called with. Sums of each type are one operation, gathers are bytes and always one.
        reduced: op and scaling of sums; empty for gathers.
        timeout: of each operation, seconds.

    Returns:
        The operations, and what puts their results in place once all are done.

    Raises:
        CollectiveError: kind ``argument``.
    """
    works: list[Work] = []
    after: list[Callable[[], None]] = []
    for alike in _by_type(calls) if reduced else [calls]:
        if len(alike) == 1:
            works.append(getattr(communicator, name)(*alike[0], **reduced, timeout=timeout))
        elif alike:
            with communicator.coalesced(**reduced, timeout=timeout) as several:
                for arguments in alike:
                    getattr(several, name)(*arguments)
            works.append(several.work)
            after.append(several.place_results)
    return works, after


def _by_type(calls: Sequence[Arguments]) -> list[list[Arguments]]:
    """Group calls by type. Types keep the order in which they come first, which is the same on all ranks."""
    found: dict[torch.dtype, list[Arguments]] = {}
    for arguments in calls:
        found.setdefault(arguments[0].dtype, []).append(arguments)
    return list(found.values())
