"""Which election id a client asks for: above the highest that the switch has seen, wherever the clock stands.

An id is 128 bits, as two halves. The newest client is the primary; the clock only makes the first bid, so that most
clients need no second one. A switch says with every answer which id is the highest so far.
"""

from __future__ import annotations

import random
import time
from typing import Any

from catchment.wire.generated import p4runtime_pb2

ElectionId = tuple[int, int]
"""Upper and lower half."""

_ABOVE_SHELL = 1
"""Upper half of the first bid: p4runtime-shell's default (1, 0) is below all of ours."""
_HALF = 1 << 64
_STEPS = 1 << 20
HIGHEST: ElectionId = (_HALF - 1, _HALF - 1)
"""The id that none is above. Who asks for it gets it once the client that holds it has gone."""


def first_bid() -> ElectionId:
    """The id to begin with."""
    return (_ABOVE_SHELL, time.time_ns())


def above(seen: ElectionId, by: int = 1) -> ElectionId:
    """The id to ask for where a switch has seen this one; HIGHEST where none is so far above."""
    value = min(seen[0] * _HALF + seen[1] + by, HIGHEST[0] * _HALF + HIGHEST[1])
    return divmod(value, _HALF)


def outbid(seen: ElectionId) -> ElectionId:
    """An id above this one that another client which has seen the same will hardly ask for, too.

    A switch ends the stream of who asks for an id that is in use.
    """
    return above(seen, random.randint(1, _STEPS))


def bid(device_id: int, election_id: ElectionId) -> Any:
    """The `p4.v1.StreamMessageRequest` that asks to become the primary."""
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = device_id
    request.arbitration.election_id.high, request.arbitration.election_id.low = election_id
    return request


def highest_in(message: Any) -> ElectionId:
    """The highest id so far, as a `p4.v1.StreamMessageResponse` of arbitration says."""
    return message.arbitration.election_id.high, message.arbitration.election_id.low


def locked_out(where: str) -> str:
    """What to say when another client holds HIGHEST."""
    return (
        f"{where}: another client is its primary with election id 2^128-1, which none is above, so nobody else can "
        "write. End that client: this one takes over as soon as its control stream closes. If it cannot be found, "
        "restart the switch, and let only those reach its P4Runtime port who have a certificate"
    )
