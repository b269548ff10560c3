"""Plays any member of a job, or an attacker, of either program, at a pace.

Tells on standard error how far it is, and at the end, as one line of JSON on the output, what came of it.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

import typer

from catchment.ending_signals import ended_as_by_ctrl_c
from catchment.program import run_program
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
from catchment.sim.lab.traffic.tagged_port import TaggedPort, keys_of
from catchment.sim.lab.traffic.user_port import UserPort
from catchment.sim.lab.traffic.worker import all_reduce, send_vectors

_GRADIENTS: Final = "gradients"


class Player(Protocol):
    """Plays a member until `count` vectors are through."""

    def __call__(
        self, port: PacedPort, sender: Sender, description: Mapping[str, Any], count: int, *, patience: float
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
    description: Mapping[str, Any],
    *,
    count: int,
    patience: float,
    stream: str = _GRADIENTS,
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
    if role == "root" and (description.get("kind") == SLOTS_KIND or "gradients" not in description):
        raise ValueError(f"a job of kind {description.get('kind')} has no root: every worker gets the sums")
    if stream != _GRADIENTS and stream not in description:
        raise ValueError(f"a job of kind {description.get('kind')} has no stream {stream!r}")
    if description.get("kind") == SLOTS_KIND:
        return asdict(RoundWorker(port, sender, description).play(count, patience))
    if "sums" in description:
        player: Player = all_reduce
    elif stream in description:
        player = _PLAYERS[role, stream]
    else:
        raise ValueError(f"a job of kind {description.get('kind')} cannot be played")
    return asdict(player(port, sender, description, count, patience=patience))


def attack(
    kind: AttackKind,
    port: PacedPort,
    sender: Sender,
    description: Mapping[str, Any],
    *,
    count: int,
    seed: int,
    victim_mac: str,
) -> dict[str, Any]:
    """Send `count` frames of a kind; returns how many must have died of which reason."""
    expected: Counter[str] = Counter()
    source = attacks(kind, sender, description, random.Random(f"attack {seed}"), victim_mac)
    for _ in range(count):
        if port.over:
            break
        what = next(source)
        before = port.frames.sent
        port.send(what.frame)
        expected[what.reason.name] += port.frames.sent - before
    return {"kind": str(kind), "expected_drops": dict(expected)}


@ended_as_by_ctrl_c()
def main(
    role: Literal["worker", "root", "attacker"],
    job: Annotated[Path, typer.Argument(help="What `catchment job show NAME --host HOST` prints.")],
    *,
    host: Annotated[str, typer.Option(help="Name for the summary.")] = "",
    ip: Annotated[str | None, typer.Option(help="Own address; that of the job's member when left out.")] = None,
    interface: Annotated[str, typer.Option(help="Of its NIC.")] = "eth0",
    stream: Annotated[
        Literal["gradients", "parameters"], typer.Option(help="Of a LuWu job, which of its two.")
    ] = _GRADIENTS,
    kind: Annotated[AttackKind, typer.Option(help="What an attacker does.")] = AttackKind.SPOOFED,
    count: Annotated[int, typer.Option(help="Vectors, or an attacker's frames.")] = 100,
    rate: Annotated[float | None, typer.Option(help="Frames per second at most.")] = None,
    loss: float = 0.0,
    skew: Annotated[str, typer.Option(help="Seconds that each new vector comes late: S, or LOW..HIGH.")] = "0",
    seconds: float | None = None,
    patience: Annotated[float, typer.Option(help="Seconds without anything new.")] = 10.0,
    seed: int = 1,
) -> int:
    """Play a member of a job, or an attacker: 0, or 1 with a message when it did not end well.

    Tells on standard error how far it is, and at the end, as one line of JSON on the output, what came of it.
    """
    description = json.loads(job.read_text("utf-8"))
    outcome: dict[str, Any] = {"role": role, "host": host, "seed": seed}
    error: str | None = None
    started = time.monotonic()
    try:
        pace = Pace(rate, loss, parse_skew(skew), seconds, seed)
        if not patience > 0:
            raise PaceError(f"a patience of {patience:g} seconds is not a positive time")
        stream_of(description)
        own = ip or description["local"][0]
        local = role == "attacker" and kind is AttackKind.LOCAL
        with UserPort(own, tuple(description["switch"])) if local else RawPort(interface) as raw:
            if isinstance(raw, UserPort):
                sender = Sender(raw.mac, own, raw.port, raw.mac, description["switch"][0])
            else:
                sender = Sender(
                    raw.mac,
                    own,
                    description["local"][1],
                    raw.resolve(description["switch"][0], own),
                    description["switch"][0],
                )
            victim_mac = raw.resolve(description["local"][0], own) if kind is AttackKind.SWITCH else sender.switch_mac
            keys = {} if role == "attacker" else keys_of(description)
            tagged = TaggedPort(raw, keys)
            port = PacedPort(tagged, pace, _progress)
            try:
                if role == "attacker":
                    outcome |= attack(kind, port, sender, description, count=count, seed=seed, victim_mac=victim_mac)
                else:
                    outcome |= play(role, port, sender, description, count=count, patience=patience, stream=stream)
            except KeyboardInterrupt:
                error = "ended by a signal"
            except TimeoutError as stuck:
                error = str(stuck)
            except OSError as broken:
                error = _failure(interface, broken)
            outcome["frames"] = asdict(port.frames) | ({"forged": tagged.forged} if keys else {})
    except (TimeoutError, PaceError, ValueError) as problem:
        error = str(problem)
    except OSError as broken:
        error = _failure(interface, broken)
    outcome["seconds"] = round(time.monotonic() - started, 3)
    error = error or outcome.get("first_fault")
    print(json.dumps({**outcome, "error": error}))
    return 0 if error is None else 1


def _failure(interface: str, error: OSError) -> str:
    """What a player says that the kernel refused a frame or a socket: its link is down, or there is none."""
    return f"{interface}: {error.strerror or error}"


def _progress(frames: Frames) -> None:
    print(f"{frames.sent} frames sent, {frames.received} received", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_program(main)
