"""Shared by every test: one seed for all random input, printed so that a failure can be repeated."""

from __future__ import annotations

import os
import random

import pytest

SEED = int(os.environ.get("CATCHMENT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


def pytest_report_header() -> str:
    return f"catchment: CATCHMENT_SEED={SEED}"


@pytest.fixture
def seed() -> int:
    """The run's seed; derive every random generator of a test from it."""
    return SEED


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """A generator that differs for each test and repeats for the same seed."""
    return random.Random(f"{seed}:{request.node.nodeid}")
