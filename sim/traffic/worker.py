"""`python -m sim.traffic.worker JOB.json`: a worker that sends vectors of its own making.

Its lane i of sequence number s is `value(wid, s, i)`, so that a receiver can check the sum. With
`--delay` it is a straggler.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.traffic.frames import Sender
from sim.traffic.pace import Pace, PacedPort, PaceError
from sim.traffic.raw_port import RawPort
from sim.traffic.serial import later, newer
from sim.traffic.values import value
from wire.generated.constants import Flag, PacketType

_TIMEOUT = 0.05


@dataclass(slots=True)
class SentCount:
    """A worker's vectors: new ones sent, acknowledged by the root, and how many were sent again."""

    started: int = 0
    acknowledged: int = 0
    resent: int = 0


def send_vectors(port: PacedPort, sender: Sender, told: Mapping[str, Any], count: int, *, patience: float) -> SentCount:
    """Send `count` vectors as fast as credit and the port's pace allow, or as many as its time allows.

    Args:
        port: where.
        sender: own addresses.
        told: what the job tells this member.
        count: vectors to send, from sequence number 0.
        patience: seconds without progress after which to give up.

    Raises:
        TimeoutError: no progress.
    """
    stream, wid = told["gradients"], told["wid"]
    acked = credit = following = 0
    done = SentCount()
    kept: dict[int, bytes] = {}
    last_progress = last_resend = time.monotonic()
    while acked != count and not port.over:
        while following != count and newer(credit, following) and not port.over:
            time.sleep(port.lateness())
            port.send(_vector(sender, stream, wid, following, 0))
            # Scapy takes milliseconds for a vector: what may have to go out again is built now.
            kept[following] = _vector(sender, stream, wid, following, Flag.RETX)
            following += 1
            done.started = following
        heard = port.receive_ours(_TIMEOUT, stream["gen"])
        now = time.monotonic()
        if heard is not None and heard.type == PacketType.MH and int(heard.flags) & Flag.ACKV:
            if newer(heard.ack, acked):
                last_progress = now
            acked, credit = later(heard.ack, acked), later(heard.credit, credit)
            done.acknowledged = acked
        if now - last_progress > patience:
            raise TimeoutError(f"worker {wid}: nothing acknowledged beyond {acked} for {patience:g} s")
        if now - max(last_progress, last_resend) > _TIMEOUT:
            last_resend = now
            for seq in range(acked, following):
                port.send(kept[seq])
                done.resent += 1
    return done


def _vector(sender: Sender, stream: Mapping[str, Any], wid: int, seq: int, flags: int) -> bytes:
    values = [value(wid, seq, lane) for lane in range(stream["lanes"])]
    return bytes(sender.vector(values, gen=stream["gen"], wid=wid, seq=seq, flags=flags))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program; prints one line of JSON."""
    parser = argparse.ArgumentParser(prog="sim.traffic.worker", description=__doc__)
    parser.add_argument("job", type=Path, help="what `catchment job show NAME --host HOST` prints")
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each vector: a straggler")
    parser.add_argument("--patience", type=float, default=10.0)
    options = parser.parse_args(arguments)
    told = json.loads(options.job.read_text("utf-8"))
    try:
        pace = Pace(skew=(options.delay, options.delay))
        with PacedPort(RawPort(), pace) as port:
            sender = Sender.of(told, port.mac, port.resolve(told["switch"][0], told["local"][0]))
            done = send_vectors(port, sender, told, options.vectors, patience=options.patience)
    except (TimeoutError, PaceError) as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps({"sent": done.started, "resent": done.resent}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
