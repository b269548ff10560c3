"""A worker that sends vectors of its own making: to a root, or in an all-reduce, where it gets and checks the sums.

Its lane i of sequence number s is `value(wid, s, i)`, so that a receiver can check the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.incoming import HEARTBEAT_SECONDS, Incoming
from catchment.sim.lab.traffic.outgoing import RESEND_SECONDS, Outgoing, SentCount
from catchment.sim.lab.traffic.pace import PacedPort
from catchment.sim.lab.traffic.sums import SumCount
from catchment.sim.lab.traffic.values import value
from catchment.wire.generated.constants import PacketType


@dataclass(slots=True)
class PeerCount(SumCount):
    """An all-reduce worker's sums, and what `SentCount` says of its vectors."""

    started: int = 0
    acknowledged: int = 0
    resent: int = 0


def send_vectors(
    port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
) -> SentCount:
    """Send `count` vectors to a root, or as many as the time of the port's pace allows.

    Args:
        port: where.
        sender: own addresses.
        description: what the job tells this member.
        count: vectors to send, from sequence number 0.
        patience: seconds without progress after which to give up.

    Raises:
        TimeoutError: no progress.
    """
    stream = description["gradients"]
    out = Outgoing(
        port, _vectors(sender, description, stream), count, name=f"worker {description['wid']}", patience=patience
    )
    while not out.all_acknowledged and not port.over:
        out.send_new()
        out.hear(port.receive_ours(RESEND_SECONDS, stream["gen"]))
        out.send_again()
    return out.done


def all_reduce(
    port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
) -> PeerCount:
    """Send `count` vectors and check the sums that come back to every worker; arguments as for `send_vectors`.

    Raises:
        TimeoutError: no progress.
    """
    stream, wid = description["sums"], description["wid"]
    sums = SumCount()
    out = Outgoing(port, _vectors(sender, description, stream), count, name=f"worker {wid}", patience=patience)
    into: Incoming[list[int]] = Incoming(
        port, sender, gen=stream["gen"], wid=wid, window=stream["slots"], count=count,
        take=lambda seq, lanes: sums.check(seq, lanes, stream["workers"]),
        name=f"worker {wid}: sum", patience=patience,
    )  # fmt: skip
    while not (out.all_acknowledged and into.complete) and not port.over:
        into.beat()
        out.send_new()
        heard = port.receive_ours(HEARTBEAT_SECONDS, stream["gen"])
        out.hear(heard)
        if heard is not None and heard.type == PacketType.FA:
            into.offer(heard.seq, list(heard.payload.values))
        out.send_again()
    into.last_words()
    sums.extra = into.extra
    return PeerCount(**asdict(sums), **asdict(out.done))


def _vectors(sender: Sender, description: Mapping[str, Any], stream: Mapping[str, Any]) -> Callable[[int, int], bytes]:
    def vector(seq: int, flags: int) -> bytes:
        values = [value(description["wid"], seq, lane) for lane in range(stream["lanes"])]
        return bytes(sender.vector(values, gen=stream["gen"], wid=description["wid"], seq=seq, flags=flags))

    return vector
