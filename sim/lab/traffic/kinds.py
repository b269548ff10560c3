"""What an attacker can be told to do, each kind with the reason that its frames must die of."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scapy.layers.l2 import ARP, Ether
from scapy.packet import Packet, Raw

from catchment.sim.lab.traffic.attack_kind import AttackKind
from catchment.sim.lab.traffic.attacker import Attack, malformed
from catchment.sim.lab.traffic.frames import Sender
from catchment.sim.lab.traffic.rounds import SLOTS_KIND, stream_of
from catchment.wire.generated.constants import ETHERNET_BYTES, IPV4_BYTES, UDP_BYTES, DropReason, PacketType

_BROADCAST = "ff:ff:ff:ff:ff:ff"
_GENERATIONS = 1 << 16
_FRONT = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES
_TYPE_BITS = 0xF


def attacks(kind: AttackKind, sender: Sender, told: Mapping[str, Any], rng: random.Random) -> Iterator[Attack]:
    """Frames of a kind without end; the attacker's port is not in the job.

    Args:
        kind: which.
        sender: own addresses.
        told: what the job tells the member that is attacked.
        rng: makes the values.
    """
    stream = stream_of(told)
    disguised = replace(sender, ip=told["local"][0], port=told["local"][1], mac="02:00:00:00:00:01")
    while True:
        if kind is AttackKind.SPOOFED:
            yield Attack("a worker's addresses", _vector(disguised, told, stream["gen"], rng), DropReason.UNKNOWN_JOB)
        elif kind is AttackKind.STOLEN:
            yield Attack("the job's number", _vector(sender, told, stream["gen"], rng), DropReason.UNKNOWN_JOB)
        elif kind is AttackKind.GENERATION:
            old = (stream["gen"] - rng.randrange(1, _GENERATIONS // 2)) % _GENERATIONS
            yield Attack(f"generation {old}", _vector(disguised, told, old, rng), DropReason.UNKNOWN_JOB)
        elif kind is AttackKind.FLOOD:
            noise = Raw(rng.randbytes(rng.randrange(0, 400)))
            frame = sender.frame(noise, version=rng.randrange(2, 16), gen=stream["gen"])
            yield Attack("noise of another version", bytes(frame), DropReason.BAD_VERSION)
        elif kind is AttackKind.ARP:
            yield Attack("the switch's address", _poison(sender, told["local"][0], rng), DropReason.FORGED_ARP)
        else:
            for attack in malformed(sender, stream["gen"], stream["lanes"], rng):
                # p4sgd.p4 knows other types beside the vectors: what is wrong with a vector is wrong for both.
                if told.get("kind") != SLOTS_KIND or attack.frame[_FRONT] & _TYPE_BITS == PacketType.PA:
                    yield attack


def _vector(sender: Sender, told: Mapping[str, Any], gen: int, rng: random.Random) -> bytes:
    values = [rng.randrange(1 << 31) for _ in range(stream_of(told)["lanes"])]
    return bytes(sender.vector(values, gen=gen, wid=told["wid"], seq=rng.randrange(1 << 32), type=PacketType.PA))


def _poison(sender: Sender, victim: str, rng: random.Random) -> bytes:
    """An answer to nobody's question, or a question, that says the switch's address is the sender's."""
    packet: Packet = Ether(src=sender.mac, dst=_BROADCAST) / ARP(
        op=rng.choice((1, 2)), hwsrc=sender.mac, psrc=sender.switch_ip, hwdst=_BROADCAST, pdst=victim
    )
    return bytes(packet)
