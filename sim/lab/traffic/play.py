"""Plays any member of a job, or an attacker, of either program, at a pace.

usage: python -m catchment.sim.lab.traffic.play ROLE JOB.json

Tells on standard error how far it is, and at the end, as one line of JSON on the output, what came of it.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.kinds import attacks
from catchment.sim.lab.traffic.layers import send_parameters, take_parameters
from catchment.sim.lab.traffic.outgoing import SentCount
from catchment.sim.lab.traffic.pace import Frames, Pace, PacedPort, PaceError, parse_skew
from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.sim.lab.traffic.root import take_sums
from catchment.sim.lab.traffic.rounds import SLOTS_KIND, RoundWorker, stream_of
from catchment.sim.lab.traffic.sums import SumCount
from catchment.sim.lab.traffic.user_port import UserPort
from catchment.sim.lab.traffic.worker import all_reduce, send_vectors

_ROLES = ("worker", "root", "attacker")
_STREAMS = ("gradients", "parameters")


class Player(Protocol):
    """Plays a member until `count` vectors are through."""

    def __call__(
        self, port: PacedPort, sender: Sender, told: Mapping[str, Any], count: int, *, patience: float
    ) -> SentCount | SumCount: ...


_PLAYERS: dict[tuple[str, str], Player] = {
    ("worker", "gradients"): send_vectors,
    ("root", "gradients"): take_sums,
    ("worker", "parameters"): take_parameters,
    ("root", "parameters"): send_parameters,
}


def play(
    role: str,
    port: PacedPort,
    sender: Sender,
    told: Mapping[str, Any],
    *,
    count: int,
    patience: float,
    stream: str = _STREAMS[0],
) -> dict[str, Any]:
    """Play a worker (of either program, and of an all-reduce) or a root, on one stream of its job.

    A LuWu job has two streams: workers send gradients and the root checks the sums, or the root sends parameters and
    the workers check them.

    Returns:
        what came of it, as plain JSON values; `first_fault` names the first wrong sum.

    Raises:
        TimeoutError: nothing new for `patience` seconds.
        ValueError: the job has no such member.
    """
    if role == "root" and (told.get("kind") == SLOTS_KIND or "gradients" not in told):
        raise ValueError(f"a job of kind {told.get('kind')} has no root: every worker gets the sums")
    if stream != _STREAMS[0] and stream not in told:
        raise ValueError(f"a job of kind {told.get('kind')} has no stream {stream!r}")
    if told.get("kind") == SLOTS_KIND:
        return asdict(RoundWorker(port, sender, told).play(count, patience))
    if "sums" in told:
        player: Player = all_reduce
    elif stream in told:
        player = _PLAYERS[role, stream]
    else:
        raise ValueError(f"a job of kind {told.get('kind')} cannot be played")
    return asdict(player(port, sender, told, count, patience=patience))


def attack(
    kind: AttackKind,
    port: PacedPort,
    sender: Sender,
    told: Mapping[str, Any],
    *,
    count: int,
    seed: int,
    victim_mac: str,
) -> dict[str, Any]:
    """Send `count` frames of a kind; returns how many must have died of which reason."""
    expected: Counter[str] = Counter()
    source = attacks(kind, sender, told, random.Random(f"attack {seed}"), victim_mac)
    for _ in range(count):
        if port.over:
            break
        what = next(source)
        before = port.frames.sent
        port.send(what.frame)
        expected[what.reason.name] += port.frames.sent - before
    return {"kind": str(kind), "expected_drops": dict(expected)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a program: 0, or 1 with a message when it did not end well."""
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    told = json.loads(options.job.read_text("utf-8"))
    outcome: dict[str, Any] = {"role": options.role, "host": options.host, "seed": options.seed}
    error: str | None = None
    started = time.monotonic()
    try:
        pace = Pace(options.rate, options.loss, parse_skew(options.skew), options.seconds, options.seed)
        stream_of(told)
        own = options.ip or told["local"][0]
        kind = AttackKind(options.kind)
        local = options.role == "attacker" and kind is AttackKind.LOCAL
        with UserPort(own, tuple(told["switch"])) if local else RawPort(options.interface) as raw:
            if isinstance(raw, UserPort):
                sender = Sender(raw.mac, own, raw.port, raw.mac, told["switch"][0])
            else:
                sender = Sender(raw.mac, own, told["local"][1], raw.resolve(told["switch"][0], own), told["switch"][0])
            victim_mac = raw.resolve(told["local"][0], own) if kind is AttackKind.SWITCH else sender.switch_mac
            port = PacedPort(raw, pace, _progress)
            try:
                if options.role == "attacker":
                    outcome |= attack(
                        kind, port, sender, told, count=options.count, seed=options.seed, victim_mac=victim_mac
                    )
                else:
                    outcome |= play(
                        options.role, port, sender, told,
                        count=options.count, patience=options.patience, stream=options.stream,
                    )  # fmt: skip
            except KeyboardInterrupt:
                error = "ended by a signal"
            except TimeoutError as stuck:
                error = str(stuck)
            outcome["frames"] = asdict(port.frames)
    except (TimeoutError, PaceError, ValueError) as problem:
        error = str(problem)
    outcome["seconds"] = round(time.monotonic() - started, 3)
    error = error or outcome.get("first_fault")
    print(json.dumps({**outcome, "error": error}))
    return 0 if error is None else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="catchment.sim.lab.traffic.play", description=__doc__)
    parser.add_argument("role", choices=_ROLES)
    parser.add_argument("job", type=Path, help="what `catchment job show NAME --host HOST` prints")
    parser.add_argument("--host", default="", help="name for the summary")
    parser.add_argument("--ip", help="own address; that of the job's member when left out")
    parser.add_argument("--interface", default="eth0", help="of its NIC")
    parser.add_argument("--stream", choices=_STREAMS, default=_STREAMS[0], help="of a LuWu job, which of its two")
    parser.add_argument("--kind", choices=[str(kind) for kind in AttackKind], default=str(AttackKind.SPOOFED))
    parser.add_argument("--count", type=int, default=100, help="vectors, or an attacker's frames")
    parser.add_argument("--rate", type=float, help="frames per second at most")
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--skew", default="0", help="seconds that each new vector comes late: S, or LOW..HIGH")
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--patience", type=float, default=10.0, help="seconds without anything new")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def _progress(frames: Frames) -> None:
    print(f"{frames.sent} frames sent, {frames.received} received", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
