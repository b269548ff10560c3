"""A fake switch that runs a program with the project's tables, and the command on it: for two folders."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import json_numbers
import pytest
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake
from running_controller import QUICK, Place, use_fake_programs, use_loopback_endpoints

from catchment import cli
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
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The `catchment` command in this process: `call(WORD..., code=0)` gives what it prints, or complains of."""

    def call(*words: str, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["catchment", *words])
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        assert (end.value.code or 0) == code, captured.err
        if code == 1 and not captured.out:
            assert captured.err.startswith("catchment: ")
        assert "Traceback" not in captured.err
        if "--json" in words and captured.out:
            json_numbers.check(captured.out)
        return captured.err if code in (1, 2) else captured.out

    return call


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
