"""A fake switch that runs a program with the project's tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from controlplane.client import SwitchClient


@pytest.fixture
def fake() -> Iterator[RunningFake]:
    with RunningFake(FakeSwitch(p4info=fake_p4info())) as running:
        yield running


@pytest.fixture
def client(fake: RunningFake) -> Iterator[SwitchClient]:
    with SwitchClient.connect(fake.address, name="s1", timeout=60.0) as connected:
        yield connected
