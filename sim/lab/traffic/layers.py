"""The parameter stream of a LuWu job: a root that sends parameters of its own making, and workers that check them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.incoming import HEARTBEAT_SECONDS, Incoming
from catchment.sim.lab.traffic.outgoing import RESEND_SECONDS, Outgoing, SentCount
from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.sums import SumCount
from catchment.sim.lab.traffic.values import parameters, parameters_fault
from catchment.wire.generated.constants import PacketType


def send_parameters(
    port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
) -> SentCount:
    """Send `count` PARAM frames to all workers, each as long as the stream allows; the switch replicates them.

    Raises:
        TimeoutError: no progress for `patience` seconds.
    """
    stream = description["parameters"]

    def build(seq: int, flags: int) -> bytes:
        data = parameters(seq, stream["param_bytes"])
        return bytes(sender.parameters(data, gen=stream["gen"], seq=seq, flags=flags))

    out = Outgoing(port, build, count, name="root", patience=patience)
    while not out.all_acknowledged and not port.over:
        out.send_new()
        out.hear(port.receive_ours(RESEND_SECONDS, stream["gen"]))
        out.send_again()
    return out.done


def take_parameters(
    port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
) -> SumCount:
    """Receive `count` PARAM frames in order, or as many as the time of the port's pace allows, and check them.

    Raises:
        TimeoutError: nothing new for `patience` seconds.
    """
    stream = description["parameters"]
    done = SumCount()

    def take(seq: int, data: bytes) -> None:
        time.sleep(port.lateness())
        done.note(parameters_fault(seq, data, stream["param_bytes"]))

    into = Incoming(
        port, sender, gen=stream["gen"], wid=description["wid"], window=stream["slots"], count=count, take=take,
        name=f"worker {description['wid']}: parameters", patience=patience,
    )  # fmt: skip
    while not into.complete and not port.over:
        into.beat()
        heard = port.receive_ours(HEARTBEAT_SECONDS, stream["gen"])
        if heard is not None and heard.type == PacketType.PARAM:
            into.offer(heard.seq, bytes(heard.payload)[: heard.lanes])
    into.last_words()
    done.extra = into.extra
    return done
