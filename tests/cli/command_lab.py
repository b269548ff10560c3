"""The command in the process of the tests, and on a topology of one fake switch."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import json_numbers
import pytest
from fake_switch import RunningFake

from catchment import cli
from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.jobs.allocation import FLOOD_GROUP

Run = Callable[..., str]

TOPOLOGY = """\
name: lab
switches:
  s1: {{program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, grpc: {address}}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}
  w1: {{ip: 10.0.0.2/24, mac: 02:00:00:00:00:02, link: s1:2}}
  opt: {{ip: 10.0.0.3/24, mac: 02:00:00:00:00:03, link: s1:3}}
"""


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
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
def topology(fake: RunningFake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CATCHMENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    path = tmp_path / "lab.yaml"
    path.write_text(TOPOLOGY.format(address=fake.address))
    monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(path))
    return path


@pytest.fixture
def run(topology: Path, call: Run) -> Run:
    """The command on that topology."""
    return call


def held_by_jobs(fake: RunningFake) -> tuple[list[TableEntry], dict[int, list[int]]]:
    """Entries and groups of the switch without its plain forwarding, which stays when jobs go."""
    with SwitchClient.connect(fake.address, read_only=True, timeout=60.0) as client:
        groups = {group: ports for group, ports in client.groups().items() if group != FLOOD_GROUP}
        return [entry for entry in client.read() if "gen" in entry.match], groups


def give_up_soon(monkeypatch: pytest.MonkeyPatch, *dead: RunningFake) -> None:
    """Have verbs wait a moment for these switches; for others, which a busy machine may hold up, as long as before."""
    real, addresses = SwitchClient.connect, {one.address for one in dead}

    def connect(address: str, *arguments: Any, timeout: float, **options: Any) -> SwitchClient:
        return real(address, *arguments, timeout=0.2 if address in addresses else timeout, **options)

    monkeypatch.setattr(SwitchClient, "connect", connect)


def as_json(run: Run, *words: str) -> Any:
    return json.loads(run(*words, "--json"))
