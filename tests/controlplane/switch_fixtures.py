"""A fake switch that runs a program with the project's tables: for two folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake
from running_controller import QUICK, Place, use_fake_programs, use_loopback_endpoints

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.controller.settings import Timing
from catchment.sim.lab.held_address import HeldAddress


@pytest.fixture
def held() -> Iterator[HeldAddress]:
    """An address for a server of the test."""
    with HeldAddress() as one:
        yield one


@pytest.fixture
def fake() -> Iterator[RunningFake]:
    with RunningFake(FakeSwitch(p4info=fake_p4info())) as running:
        yield running


@pytest.fixture
def client(fake: RunningFake) -> Iterator[SwitchClient]:
    with SwitchClient.connect(fake.address, name="s1", timeout=60.0) as connected:
        yield connected


@pytest.fixture
def timing() -> Timing:
    """The timing of the controller; parametrize a test with another."""
    return QUICK


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, timing: Timing) -> Iterator[Place]:
    use_fake_programs(monkeypatch, tmp_path)
    use_loopback_endpoints(monkeypatch)
    made = Place(tmp_path, timing)
    with made.exits:
        yield made
