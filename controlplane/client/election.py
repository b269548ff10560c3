"""Which election id a client asks for: above the highest that the switch has seen, wherever the clock stands.

An id is 128 bits, as two halves. The newest client is the primary; the clock only makes the first bid, so that most
clients need no second one. A switch says with every answer which id is the highest so far.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Any

from google.rpc import code_pb2

from catchment.controlplane.client.errors import SwitchError
from catchment.wire.generated import p4runtime_pb2

ElectionId = tuple[int, int]
"""Upper and lower half."""

_ABOVE_SHELL = 1
"""Upper half of the first bid: p4runtime-shell's default (1, 0) is below all of ours."""
_HALF = 1 << 64
_STEPS = 1 << 20
HIGHEST: ElectionId = (_HALF - 1, _HALF - 1)
"""The id that none is above. A client that asks for it gets it once the one that holds it has gone."""


def first_bid() -> ElectionId:
    """The id to begin with."""
    return (_ABOVE_SHELL, time.time_ns())


def above(seen: ElectionId, by: int = 1) -> ElectionId:
    """The id to ask for where a switch has seen this one; HIGHEST where none is so far above."""
    value = min(seen[0] * _HALF + seen[1] + by, HIGHEST[0] * _HALF + HIGHEST[1])
    return divmod(value, _HALF)


def outbid(seen: ElectionId) -> ElectionId:
    """An id above this one that another client which has seen the same will hardly ask for, too.

    A switch ends the stream of a client that asks for an id that is in use.
    """
    return above(seen, random.randint(1, _STEPS))


@dataclass(slots=True)
class Candidate:
    """A client's part in the election of a primary, without any input or output of its own.

    The client sends what `bid` and `hear` give, and lets `hear` have each message of arbitration that it receives.

    Attributes:
        device_id: P4Runtime device id.
        election_id: the one that the client asked for last.
        rival: the election id of the client that took the switch over since; None while this client is the primary.
        elected: this client's last bid was answered: it became the primary.
        term: counts what the switch said of the election: while it stays the same, no other client wrote.
    """

    device_id: int
    election_id: ElectionId = field(default_factory=first_bid)
    rival: ElectionId | None = None
    elected: bool = False
    term: int = 0
    _highest: ElectionId = (0, 0)

    def bid(self) -> Any:
        """The `p4.v1.StreamMessageRequest` that asks to become the primary."""
        self.elected = False
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = self.device_id
        request.arbitration.election_id.high, request.arbitration.election_id.low = self.election_id
        return request

    def bid_again(self) -> Any:
        """The request that asks to become the primary in place of the client that is."""
        self.election_id = outbid(max(self._highest, self.election_id))
        return self.bid()

    def hear(self, message: Any) -> Any | None:
        """Take what the switch says of the election; gives the next bid where the last one was too low."""
        highest = message.arbitration.election_id.high, message.arbitration.election_id.low
        self._highest = max(self._highest, highest)
        self.term += 1
        code = message.arbitration.status.code
        if code == code_pb2.OK:
            self.rival, self.elected = None, True
        elif self.elected:
            self.rival = highest if code == code_pb2.ALREADY_EXISTS else None
        elif highest > self.election_id:
            # An older notice about another client may still be on its way; the one about this client follows it.
            return self.bid_again()
        return None

    def not_elected(self, where: str, seconds: float) -> SwitchError:
        """The exception for a bid to which no answer came in time, or for which the switch ended the stream."""
        if self.election_id == HIGHEST:  # the switch ends the stream of a client that asks for an id in use
            return SwitchError(
                f"{where}: another client is its primary with election id 2^128-1, which none is above, so nobody else "
                "can write. End that client: this one takes over as soon as its control stream closes. If it cannot be "
                "found, restart the switch, and let only those reach its P4Runtime port who have a certificate",
                code="PERMISSION_DENIED",
            )
        return SwitchError(
            f"{where}: no answer to the request to become its controller within {seconds:g} s; is device id "
            f"{self.device_id} right?",
            code="DEADLINE_EXCEEDED",
        )
