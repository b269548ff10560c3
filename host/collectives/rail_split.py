"""How an operation is split over rails: the C library's balancer, for tools and tests (docs/explanation/rails.md)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum
from itertools import chain
from typing import Any

from catchment.host.collectives.calls import checked_elements
from catchment.host.collectives.errors import wrong
from catchment.host.collectives.library import RailCostWords, RailShareWords, library
from catchment.host.collectives.whole_number import whole
from catchment.host.given_several import in_order

MOST_RAILS = 8
_MOST_COST = (1 << 32) - 1
_COSTS = f"give whole numbers, 0..{_MOST_COST}"


class RailPolicy(IntEnum):
    """What decides about the split: `WATERFILL`, or one of the baselines of Nezha's evaluation.

    WATERFILL: as the rails were measured, so that all end together; one rail where several would not pay.
    PAPER: the equations of the paper. FIXED: by nominal rates. SLICES: slices of 64 KiB in turn, as MPTCP does.
    SINGLE: the best rail alone.
    """

    WATERFILL = 0
    PAPER = 1
    FIXED = 2
    SLICES = 3
    SINGLE = 4


@dataclass(frozen=True, slots=True)
class RailCost:
    """What a rail costs.

    Attributes:
        start_ns: nanoseconds before the first byte.
        bytes_per_ms: of the wire, at which an all-reduce runs; 0: the rail is not to be used.
        nominal: the rate that the topology names, in any unit that the rails share.
        beside_start_ns: as `start_ns`, of a part while other rails carry the others.
        beside_bytes_per_ms: as `bytes_per_ms`, likewise; 0: as alone.
    """

    start_ns: int
    bytes_per_ms: int
    nominal: int = 0
    beside_start_ns: int = 0
    beside_bytes_per_ms: int = 0


@dataclass(frozen=True, slots=True)
class RailShare:
    """Elements `first` to `first + elements` of an operation, and the index of the rail that carries them."""

    rail: int
    first: int
    elements: int


def checked_policy(policy: Any) -> RailPolicy:
    """A policy that a caller gave.

    Raises:
        CollectiveError: kind ``argument``.
    """
    try:
        if not isinstance(policy, bool):
            return RailPolicy(policy)
    except ValueError:
        pass
    known = ", ".join(one.name for one in RailPolicy)
    raise wrong(f"policy {policy!r}", f"give a RailPolicy: {known}")


def split(rails: Sequence[RailCost], together_ns: Sequence[int], policy: RailPolicy, elements: int) -> list[RailShare]:
    """The shares of `elements`, in their order.

    Args:
        rails: 1..8, of which one may be used.
        together_ns: at k - 1 what using k rails at once costs besides, in nanoseconds.
        policy: who decides.
        elements: of the operation, 4 bytes of the wire each.

    Raises:
        CollectiveError: kind ``argument``.
    """
    taken, costs_ns = in_order(rails), in_order(together_ns)
    if taken is None:
        raise wrong(f"rails {rails!r:.80}", "give a list")
    if costs_ns is None:
        raise wrong(f"costs of several rails {together_ns!r:.80}", "give a list")
    if any(not isinstance(rail, RailCost) for rail in taken):
        raise wrong(f"rails {taken!r:.80}", "give a RailCost for each")
    rails, together_ns = taken, costs_ns
    if not 1 <= len(rails) <= MOST_RAILS or not any(rail.bytes_per_ms for rail in rails):
        raise wrong(f"{len(rails)} rails", f"give 1..{MOST_RAILS}, of which one has a rate")
    if len(together_ns) != len(rails):
        raise wrong(f"{len(together_ns)} costs of several rails", f"give {len(rails)}, one for each number of rails")
    policy, elements = checked_policy(policy), checked_elements(elements)
    for number in (*together_ns, *chain.from_iterable(map(astuple, rails))):
        if not 0 <= whole("a cost of", number, _COSTS) <= _MOST_COST:
            raise wrong(f"a cost of {number}", _COSTS)
    costs = (RailCostWords * len(rails))(*(RailCostWords(*astuple(rail)) for rail in rails))
    together = (ctypes.c_uint32 * len(rails))(*together_ns)
    ask = library().catchment_rails_split
    count = ask(costs, together, len(rails), policy, elements, None, 0)
    shares = (RailShareWords * count)()
    ask(costs, together, len(rails), policy, elements, shares, count)
    return [RailShare(share.rail, share.first, share.elements) for share in shares]
