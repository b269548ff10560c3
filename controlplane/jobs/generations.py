"""The order in which generations are given out: each once before any comes again, and none that can be guessed.

Who knows a job's generation has one of two things that admit a frame, so a tenant must not be able to count on from its
own. The order is a permutation of all generations that a secret key picks: a Feistel network over 16 bits.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

MAX_GENERATION = 0xFFFF
KEY_BITS = 62
"""The key is as long as fits into an integer of the job file."""
_ROUNDS = 6
_HALF = 8


def _new_key() -> int:
    return secrets.randbits(KEY_BITS)


@dataclass(frozen=True, slots=True)
class GenerationOrder:
    """A secret permutation of 1 .. MAX_GENERATION.

    Attributes:
        key: picks the permutation; drawn at random unless given.
    """

    key: int = field(default_factory=_new_key, repr=False)

    def at(self, place: int) -> int:
        """The generation at a place of the order, both from 1 to MAX_GENERATION."""
        value = self._mixed(place)
        while value == 0:  # no generation: on along the cycle, which leads to 1 .. MAX_GENERATION
            value = self._mixed(value)
        return value

    def place(self, generation: int) -> int:
        """The place that `at` has a generation at."""
        value = self._unmixed(generation)
        while value == 0:
            value = self._unmixed(value)
        return value

    def _mixed(self, value: int) -> int:
        left, right = value >> _HALF, value & ((1 << _HALF) - 1)
        for number in range(_ROUNDS):
            left, right = right, left ^ self._round(number, right)
        return left << _HALF | right

    def _unmixed(self, value: int) -> int:
        left, right = value >> _HALF, value & ((1 << _HALF) - 1)
        for number in reversed(range(_ROUNDS)):
            left, right = right ^ self._round(number, left), left
        return left << _HALF | right

    def _round(self, number: int, half: int) -> int:
        key = self.key.to_bytes(KEY_BITS // 8 + 1, "big")
        return hashlib.blake2b(bytes((number, half)), digest_size=1, key=key).digest()[0]
