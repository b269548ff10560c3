"""The random programs of the tests, by seed and number: below 100 the quick ones."""

from __future__ import annotations

import random
from dataclasses import dataclass

from comparison import packets_for
from generator import random_program
from generator_scope import Options

SLOW_FROM = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A program with its packets: (port, packet)."""

    text: str
    packets: list[tuple[int, bytes]]
    options: Options


def case_of(seed: int, number: int) -> Case:
    """The program of that number."""
    rng, strict = random.Random(f"{seed}:{number}"), number % 2 == 0
    if number < SLOW_FROM:
        options = Options(size=3, strict=strict, delivery=number == 1)
    else:
        options = Options(strict=strict, delivery=number % 4 > 1)
    text = random_program(rng, options)
    return Case(text, packets_for(rng, 100), options)
