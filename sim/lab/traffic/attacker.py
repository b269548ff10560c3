"""Malformed and spoofed frames, each with the reason it must die of."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from scapy.layers.inet import IP, UDP, IPOption_NOP
from scapy.packet import Packet, Raw

from catchment.program import run_program
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.raw_port import RawPort
from catchment.wire.generated.constants import DropReason, Flag, PacketType
from catchment.wire.generated.scapy_layers import Catchment

_UNASSIGNED_FLAG = 0x80


@dataclass(frozen=True, slots=True)
class Attack:
    """A frame that must change nothing but a counter.

    Attributes:
        name: what is wrong with it.
        frame: the bytes.
        reason: the drop reason that must count it.
    """

    name: str
    frame: bytes
    reason: DropReason


def malformed(sender: Sender, gen: int, lanes: int, rng: random.Random) -> Iterator[Attack]:
    """Frames that no port may send, whatever job it is in."""

    def vector(**fields: int) -> Packet:
        values = [rng.randrange(-(1 << 31), 1 << 31) for _ in range(fields.pop("count", lanes))]
        return sender.vector(values, gen=gen, seq=rng.randrange(1 << 32), **fields)

    def changed(packet: Packet, layer: type[Packet], **fields: Any) -> bytes:
        # Rebuilt from its own bytes, so that only what is named here is wrong.
        fresh = packet.__class__(bytes(packet))
        for name, value in fields.items():
            setattr(fresh[layer], name, value)
        if layer is IP and "chksum" not in fields:
            fresh[IP].chksum = None
        return bytes(fresh)

    yield Attack("version 3", bytes(vector(version=3)), DropReason.BAD_VERSION)
    yield Attack("version 0", bytes(vector(version=0)), DropReason.BAD_VERSION)
    for kind in (0, PacketType.ACK, PacketType.CNF, 9, 15):
        yield Attack(f"type {int(kind)}", bytes(sender.frame(type=int(kind), gen=gen)), DropReason.BAD_TYPE)
    yield Attack("unassigned flag", bytes(vector(flags=_UNASSIGNED_FLAG)), DropReason.BAD_FLAGS)
    yield Attack("heartbeat that says nothing", bytes(sender.heartbeat(1, 9, gen=gen, flags=0)), DropReason.BAD_FLAGS)
    yield Attack("too few lanes", bytes(vector(lanes=lanes - 1)), DropReason.BAD_LANES)
    yield Attack("lanes of another build", bytes(vector(lanes=lanes * 2)), DropReason.BAD_LANES)
    yield Attack("bytes missing", bytes(vector())[:-4], DropReason.PARSE_ERROR)
    yield Attack("UDP length too small", changed(vector(), UDP, len=30), DropReason.BAD_LENGTH)
    yield Attack("IPv4 length too large", changed(vector(), IP, len=1400), DropReason.BAD_LENGTH)
    yield Attack("a trailer", bytes(vector()) + b"\0\0", DropReason.BAD_LENGTH)
    yield Attack(
        "parameters shorter than said",
        bytes(sender.parameters(b"x" * 100, gen=gen, lanes=101)),
        DropReason.BAD_LENGTH,
    )
    yield Attack("wrong header checksum", changed(vector(), IP, chksum=1), DropReason.BAD_IPV4)
    yield Attack("a fragment", changed(vector(), IP, flags="MF"), DropReason.BAD_IPV4)
    optioned = vector()
    optioned[IP].options = [IPOption_NOP()] * 4
    yield Attack("IPv4 options", bytes(optioned), DropReason.BAD_IPV4)
    header = bytes(sender.frame(type=int(PacketType.PA), gen=gen, lanes=lanes))
    yield Attack("header cut off", header[:50], DropReason.PARSE_ERROR)


def spoofed(sender: Sender, description: Mapping[str, Any], rng: random.Random) -> Iterator[Attack]:
    """Good frames of a job, from a port that is not in it: the addresses of a member do not help."""
    lanes = description[_streams(description)[0]]["lanes"]
    disguised = replace(sender, ip=description["local"][0], port=description["local"][1], mac="02:00:00:00:00:01")
    for stream in _streams(description):
        gen = description[stream]["gen"]
        for who in (sender, disguised):
            values = [rng.randrange(1 << 31) for _ in range(lanes)]
            common = {"gen": gen, "wid": description["wid"], "seq": rng.randrange(1 << 32)}
            beat = {"flags": int(Flag.ACKV), "ack": 1 << 30, "credit": 1 << 31}
            for packet in (
                who.vector(values, **common),
                who.vector(values, **common, **beat),
                who.vector(values, **{**common, "type": int(PacketType.FA)}),
                who.heartbeat(1 << 30, 1 << 31, gen=gen),
                who.frame(type=int(PacketType.MH), gen=gen, **beat),
                who.parameters(rng.randbytes(200), gen=gen),
            ):
                name = f"{stream}: type {packet[Catchment].type} from outside"
                yield Attack(name, bytes(packet), DropReason.UNKNOWN_JOB)
    for gen in {0, 0xFFFF, rng.randrange(1, 1 << 16)} - {
        description[stream]["gen"] for stream in _streams(description)
    }:
        yield Attack(f"generation {gen}", bytes(sender.heartbeat(0, 1, gen=gen)), DropReason.UNKNOWN_JOB)


def wrong_direction(sender: Sender, description: Mapping[str, Any], rng: random.Random) -> Iterator[Attack]:
    """What a worker of the job itself may not send: the root's and the switch's words."""
    lanes = description["gradients"]["lanes"]
    up, down = description["gradients"]["gen"], description["parameters"]["gen"]
    values = [rng.randrange(1 << 31) for _ in range(lanes)]
    packets = {
        "a sum": sender.vector(values, gen=up, type=int(PacketType.FA)),
        "a merged heartbeat": sender.frame(type=int(PacketType.MH), gen=up, flags=int(Flag.ACKV), ack=9, credit=99),
        "the root's heartbeat": sender.heartbeat(1 << 30, 1 << 31, gen=up),
        "parameters": sender.parameters(b"poison" * 20, gen=down),
        "a vector on the parameters' stream": sender.vector(values, gen=down),
    }
    for name, packet in packets.items():
        yield Attack(name, bytes(packet), DropReason.WRONG_DIRECTION)


def noise(sender: Sender, rng: random.Random, count: int) -> Iterator[bytes]:
    """Frames to the switch with random bytes behind the UDP header: they die of whatever they hit first."""
    for _ in range(count):
        body = Raw(rng.randbytes(rng.randrange(0, 400)))
        frame = sender.frame()
        frame[UDP].remove_payload()
        yield bytes(frame / body)


def _streams(description: Mapping[str, Any]) -> list[str]:
    return [name for name in ("gradients", "parameters", "sums") if name in description]


def main(
    target: Annotated[Path, typer.Argument(help="What `catchment job show NAME --host HOST` prints.")],
    *,
    ip: Annotated[str, typer.Option(help="Own address.")],
    member: Annotated[bool, typer.Option("--member", help="This host is a worker of the job.")] = False,
    repeat: int = 1,
    noise_frames: Annotated[int, typer.Option("--noise", help="Frames of random bytes, with no expected reason.")] = 0,
    seed: int = 1,
) -> None:
    """Send malformed and spoofed frames; prints, as JSON, how many must have died of which reason.

    TARGET is what a job tells one of its members; the attacker needs not be one.
    """
    description = json.loads(target.read_text("utf-8"))
    rng = random.Random(seed)
    expected: Counter[str] = Counter()
    with RawPort() as port:
        switch_ip = description["switch"][0]
        sender = Sender(port.mac, ip, description["local"][1], port.resolve(switch_ip, ip), switch_ip)
        stream = description[_streams(description)[0]]
        for _ in range(repeat):
            attacks = [*malformed(sender, stream["gen"], stream["lanes"], rng)]
            attacks += wrong_direction(sender, description, rng) if member else spoofed(sender, description, rng)
            for attack in attacks:
                port.send(attack.frame)
                expected[attack.reason.name] += 1
        for frame in noise(sender, rng, noise_frames):
            port.send(frame)
    print(json.dumps(expected))


if __name__ == "__main__":
    run_program(main)
