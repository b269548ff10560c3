"""What an attacker can be told to do, each kind with the reason that its frames must die of."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scapy.layers.inet import UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from catchment.sim.golden.tags import signed_frame
from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.attacker import Attack, malformed
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.rounds import SLOTS_KIND, stream_of
from catchment.wire.generated.constants import (
    HEADER_OFFSET,
    TAGGED_VERSION,
    UDP_PORT,
    DropReason,
    Flag,
    PacketType,
)

_BROADCAST = "ff:ff:ff:ff:ff:ff"
_GENERATIONS = 1 << 16
_TYPE_BITS = 0xF
_SEQUENCE = 0xFFFF_FFFF


def attacks(
    kind: AttackKind, sender: Sender, description: Mapping[str, Any], rng: random.Random, victim_mac: str = _BROADCAST
) -> Iterator[Attack]:
    """Frames of a kind without end; the attacker's port is not in the job, but those of LOCAL and KEYLESS are members'.

    Args:
        kind: which.
        sender: own addresses; of a local attacker, those of its own socket; of a keyless one, the member's.
        description: what the job tells the member that is attacked.
        rng: makes the values.
        victim_mac: hardware address of the member that is attacked in the switch's name.

    Raises:
        ValueError: KEYLESS in a job without tags.
    """
    if kind is AttackKind.SWITCH:
        yield from impersonations(sender, description, rng, victim_mac)
    if kind is AttackKind.LOCAL:
        yield from local_frames(sender, description, rng)
    if kind is AttackKind.KEYLESS:
        yield from keyless_frames(sender, description, rng)
    stream = stream_of(description)
    disguised = replace(sender, ip=description["local"][0], port=description["local"][1], mac="02:00:00:00:00:01")
    while True:
        if kind is AttackKind.SPOOFED:
            yield Attack(
                "a worker's addresses", _vector(disguised, description, stream["gen"], rng), DropReason.UNKNOWN_JOB
            )
        elif kind is AttackKind.STOLEN:
            yield Attack("the job's number", _vector(sender, description, stream["gen"], rng), DropReason.UNKNOWN_JOB)
        elif kind is AttackKind.GENERATION:
            old = (stream["gen"] - rng.randrange(1, _GENERATIONS // 2)) % _GENERATIONS
            yield Attack(f"generation {old}", _vector(disguised, description, old, rng), DropReason.UNKNOWN_JOB)
        elif kind is AttackKind.FLOOD:
            noise = Raw(rng.randbytes(rng.randrange(0, 400)))
            frame = sender.frame(noise, version=rng.randrange(TAGGED_VERSION + 1, 16), gen=stream["gen"])
            yield Attack("noise of another version", bytes(frame), DropReason.BAD_VERSION)
        elif kind is AttackKind.ARP:
            yield Attack("the switch's address", _poison(sender, description["local"][0], rng), DropReason.FORGED_ARP)
        else:
            for attack in malformed(sender, stream["gen"], stream["lanes"], rng):
                # p4sgd.p4 knows other types beside the vectors: what is wrong with a vector is wrong for both.
                if description.get("kind") != SLOTS_KIND or attack.frame[HEADER_OFFSET] & _TYPE_BITS == PacketType.PA:
                    yield attack


def impersonations(
    sender: Sender, description: Mapping[str, Any], rng: random.Random, victim_mac: str
) -> Iterator[Attack]:
    """What only the switch may say to a member, past the switch's program, without end."""
    ip, port = description["local"]
    for mac in itertools.cycle((sender.mac, sender.switch_mac)):
        switch = replace(sender, mac=mac, ip=sender.switch_ip, port=UDP_PORT, switch_mac=victim_mac, switch_ip=ip)
        for name, packet in _switch_words(switch, description, rng):
            packet[UDP].dport = port
            yield Attack(f"{name} in the switch's name", bytes(packet), DropReason.FORGED_SOURCE)


def _switch_words(switch: Sender, description: Mapping[str, Any], rng: random.Random) -> Iterator[tuple[str, Packet]]:
    for stream in streams_of(description):
        gen, slots, values = stream["gen"], stream["slots"], _values(stream, rng)
        for seq in (rng.randrange(2 * slots), rng.randrange(1 << 32)):
            beat = {"gen": gen, "seq": seq, "flags": int(Flag.ACKV), "ack": seq, "credit": seq + slots & _SEQUENCE}
            yield "a sum", switch.vector(values, **{**beat, "type": int(PacketType.FA)})
            yield "parameters", switch.parameters(rng.randbytes(stream.get("param_bytes", 64)), gen=gen, seq=seq)
            yield "a merged heartbeat", switch.frame(**{**beat, "type": int(PacketType.MH)})
            yield "a confirmation", switch.frame(type=int(PacketType.CNF), gen=gen, seq=seq)


def local_frames(sender: Sender, description: Mapping[str, Any], rng: random.Random) -> Iterator[Attack]:
    """Vectors, near and far, and what else the member sends, from another UDP port of its host, without end."""
    slots_kind = description.get("kind") == SLOTS_KIND
    while True:
        for stream in streams_of(description):
            gen, slots = stream["gen"], stream["slots"]
            for seq in (rng.randrange(2 * slots), (1 << 31) - 1 - rng.randrange(slots), rng.randrange(1 << 32)):
                common = {"gen": gen, "wid": description["wid"], "seq": seq}
                packets = [sender.vector(_values(stream, rng), **common)]
                if slots_kind:
                    packets.append(sender.frame(type=int(PacketType.ACK), **common))
                else:
                    packets.append(sender.heartbeat(seq, seq + slots & _SEQUENCE, **common))
                    packets.append(sender.parameters(rng.randbytes(64), **common))
                for packet in packets:
                    yield Attack("another program of the host", bytes(packet), DropReason.WRONG_UDP_PORT)


def keyless_frames(sender: Sender, description: Mapping[str, Any], rng: random.Random) -> Iterator[Attack]:
    """What a member would send next, without a tag or with one under a key of the attacker's own, without end."""
    streams = [stream for stream in streams_of(description) if stream.get("key")]
    if not streams:
        raise ValueError("the job has no tags: an attacker with root's rights on a member's host is that member")
    while True:
        for stream in streams:
            seq = stream["base_seq"] + rng.randrange(2 * stream["slots"]) & _SEQUENCE
            common = {"gen": stream["gen"], "wid": description["wid"], "seq": seq}
            vector = bytes(sender.vector(_values(stream, rng), **common))
            empty = (
                sender.frame(type=int(PacketType.ACK), **common)
                if description.get("kind") == SLOTS_KIND
                else sender.heartbeat(seq, seq + stream["slots"] & _SEQUENCE, **common)
            )
            for frame in (vector, bytes(empty)):
                yield Attack("no tag", frame, DropReason.BAD_TAG)
                yield Attack("a tag under another key", signed_frame(frame, rng.randbytes(16)), DropReason.BAD_TAG)


def streams_of(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All streams of what a job tells a member."""
    return [description[name] for name in ("gradients", "parameters", "sums") if name in description]


def _values(stream: Mapping[str, Any], rng: random.Random) -> list[int]:
    return [rng.randrange(1 << 31) for _ in range(stream["lanes"])]


def _vector(sender: Sender, description: Mapping[str, Any], gen: int, rng: random.Random) -> bytes:
    return bytes(
        sender.vector(
            _values(stream_of(description), rng),
            gen=gen,
            wid=description["wid"],
            seq=rng.randrange(1 << 32),
            type=PacketType.PA,
        )
    )


def _poison(sender: Sender, victim: str, rng: random.Random) -> bytes:
    """An answer to a question that no host asked, or a question, that says the switch's address is the sender's."""
    packet: Packet = Ether(src=sender.mac, dst=_BROADCAST) / ARP(
        op=rng.choice((1, 2)), hwsrc=sender.mac, psrc=sender.switch_ip, hwdst=_BROADCAST, pdst=victim
    )
    return bytes(packet)
