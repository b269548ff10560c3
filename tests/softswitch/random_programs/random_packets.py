"""Packets for random programs: their first header steers the parser."""

from __future__ import annotations

import random


def random_packet(rng: random.Random) -> bytes:
    """Mostly long enough for what the first header asks for; sometimes short, sometimes anything."""
    kind, count = rng.randrange(8), rng.choice((0, 1, 2, 3, 5, 99, 100, 101, 200))
    first = bytes([kind | rng.choice((0, 0, 8, 0xF0)), count, rng.choice((0, 1, 8, 16, 40, 41, 64, 255))])
    fill = rng.choice((bytes, rng.randbytes, rng.randbytes))
    packet = first + fill(rng.choice((2, 40, 400, 1000)))
    return packet[: rng.randrange(1, len(packet))] if rng.random() < 0.15 else packet
