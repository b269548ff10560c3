"""`python -m sim.traffic.root JOB.json`: an optimizer node that only checks the sums it gets."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.traffic.frames import Sender
from sim.traffic.raw_port import RawPort
from sim.traffic.serial import MODULUS
from sim.traffic.worker import value
from wire.generated.constants import PacketType

_HEARTBEAT_SECONDS = 0.01


def take_sums(port: RawPort, sender: Sender, told: Mapping[str, Any], count: int, patience: float) -> int:
    """Receive `count` sums in order; returns how many arrived more than once or too early.

    Raises:
        TimeoutError: nothing new for `patience` seconds.
        ValueError: a sum is wrong; names sequence number and lane.
    """
    stream = told["gradients"]
    window: dict[int, list[int]] = {}
    expected = extra = 0
    last_progress, last_heartbeat = time.monotonic(), 0.0
    while expected != count:
        now = time.monotonic()
        if now - last_heartbeat >= _HEARTBEAT_SECONDS:
            port.send(sender.heartbeat(expected, (expected + stream["slots"]) % MODULUS, gen=stream["gen"]))
            last_heartbeat = now
        if now - last_progress > patience:
            raise TimeoutError(f"root: sum {expected} does not come for {patience:g} s")
        heard = port.receive_ours(_HEARTBEAT_SECONDS, stream["gen"])
        if heard is None or heard.type != PacketType.FA:
            continue
        if (heard.seq - expected) % MODULUS >= stream["slots"] or heard.seq in window:
            extra += 1
            continue
        window[heard.seq] = list(heard.payload.values)
        while expected in window:
            _check(expected, window.pop(expected), stream["workers"])
            expected += 1
            last_progress = time.monotonic()
    # The last acknowledgement must reach everyone, and may be lost: say it for a while.
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        port.send(sender.heartbeat(expected, expected, gen=stream["gen"]))
        port.receive(_HEARTBEAT_SECONDS)
    return extra


def _check(seq: int, lanes: Sequence[int], workers: int) -> None:
    for lane, got in enumerate(lanes):
        wanted = sum(value(wid, seq, lane) for wid in range(workers))
        if got != wanted:
            raise ValueError(f"sum {seq}, lane {lane}: {got} instead of {wanted}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program; prints one line of JSON."""
    parser = argparse.ArgumentParser(prog="sim.traffic.root", description=__doc__)
    parser.add_argument("job", type=Path, help="what `catchment job show NAME --host HOST` prints")
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--patience", type=float, default=10.0)
    options = parser.parse_args(arguments)
    told = json.loads(options.job.read_text("utf-8"))
    with RawPort() as port:
        sender = Sender.of(told, port.mac, port.resolve(told["switch"][0], told["local"][0]))
        try:
            extra = take_sums(port, sender, told, options.vectors, options.patience)
        except (TimeoutError, ValueError) as error:
            print(error, file=sys.stderr)
            return 1
    print(json.dumps({"received": options.vectors, "extra": extra}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
