"""An optimizer node that only checks the sums it gets."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.incoming import HEARTBEAT_SECONDS, Incoming
from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.sums import SumCount
from catchment.wire.generated.constants import PacketType


def take_sums(
    port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
) -> SumCount:
    """Receive `count` sums in order, or as many as the time of the port's pace allows, and check them.

    Raises:
        TimeoutError: nothing new for `patience` seconds.
    """
    stream = description["gradients"]
    done = SumCount()

    def take(seq: int, lanes: list[int]) -> None:
        time.sleep(port.lateness())
        done.check(seq, lanes, stream["workers"])

    into = Incoming(
        port, sender, gen=stream["gen"], wid=0, window=stream["slots"], count=count, take=take,
        name="root: sum", patience=patience,
    )  # fmt: skip
    while not into.complete and not port.over:
        into.beat()
        heard = port.receive_ours(HEARTBEAT_SECONDS, stream["gen"])
        if heard is not None and heard.type == PacketType.FA:
            into.offer(heard.seq, list(heard.payload.values))
    into.last_words()
    done.extra = into.extra
    return done
