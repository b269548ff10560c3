"""`python -m sim.traffic.root JOB.json`: an optimizer node that only checks the sums it gets."""

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
from sim.traffic.pace import Pace, PacedPort
from sim.traffic.raw_port import RawPort
from sim.traffic.serial import MODULUS
from sim.traffic.values import fault
from wire.generated.constants import PacketType

_HEARTBEAT_SECONDS = 0.01


@dataclass(slots=True)
class SumCount:
    """A root's sums: right ones, wrong ones (`first_fault`: the first), and those that came again or too early."""

    right: int = 0
    wrong: int = 0
    extra: int = 0
    first_fault: str | None = None


def take_sums(port: PacedPort, sender: Sender, told: Mapping[str, Any], count: int, patience: float) -> SumCount:
    """Receive `count` sums in order, or as many as the time of the port's pace allows, and check them.

    Raises:
        TimeoutError: nothing new for `patience` seconds.
    """
    stream = told["gradients"]
    window: dict[int, list[int]] = {}
    expected = 0
    done = SumCount()
    last_progress, last_heartbeat = time.monotonic(), 0.0
    while expected != count and not port.over:
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
            done.extra += 1
            continue
        window[heard.seq] = list(heard.payload.values)
        while expected in window:
            time.sleep(port.lateness())
            _check(expected, window.pop(expected), stream["workers"], done)
            expected += 1
            last_progress = time.monotonic()
    # The last acknowledgement must reach everyone, and may be lost: say it for a while.
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        port.send(sender.heartbeat(expected, expected, gen=stream["gen"]))
        port.receive(_HEARTBEAT_SECONDS)
    return done


def _check(seq: int, lanes: Sequence[int], workers: int, done: SumCount) -> None:
    problem = fault(seq, lanes, workers)
    if problem is None:
        done.right += 1
    else:
        done.wrong += 1
        done.first_fault = done.first_fault or problem


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program; prints one line of JSON."""
    parser = argparse.ArgumentParser(prog="sim.traffic.root", description=__doc__)
    parser.add_argument("job", type=Path, help="what `catchment job show NAME --host HOST` prints")
    parser.add_argument("--vectors", type=int, default=100)
    parser.add_argument("--patience", type=float, default=10.0)
    options = parser.parse_args(arguments)
    told = json.loads(options.job.read_text("utf-8"))
    try:
        with PacedPort(RawPort(), Pace()) as port:
            sender = Sender.of(told, port.mac, port.resolve(told["switch"][0], told["local"][0]))
            done = take_sums(port, sender, told, options.vectors, options.patience)
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return 1
    if done.first_fault is not None:
        print(done.first_fault, file=sys.stderr)
        return 1
    print(json.dumps({"received": done.right, "extra": done.extra}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
