"""Random programs: the compiled switch does what the interpreter does, packet for packet and register for register."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from comparison import compare_compiled, packets_for
from generator import random_program
from generator_scope import Options


def _compare(number: int, seed: int, folder: Path, options: Options) -> None:
    rng = random.Random(f"{seed}:{number}")
    source = folder / f"random{number}.p4"
    text = random_program(rng, options)
    source.write_text(text)
    difference = compare_compiled(source, packets_for(rng, 100), folder / "cache")
    assert difference is None, f"seed {seed}, program {number}\n{difference}\n{text}"


@pytest.mark.parametrize("number", range(3))
def test_random_programs(seed: int, number: int, tmp_path: Path) -> None:
    _compare(number, seed, tmp_path, Options(size=3, strict=number % 2 == 0))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(100, 200))
def test_many_random_programs(seed: int, number: int, tmp_path: Path) -> None:
    _compare(number, seed, tmp_path, Options(strict=number % 2 == 0))
