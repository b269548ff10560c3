"""`fault` and `stats` where a switch of several fails: the others give what was asked for, and it is named."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_lab import Run
from fake_program import fake_p4info
from fake_switch import FakeSwitch, RunningFake

from catchment import cli
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.state.faults import losses

LIVING, FAILING = ("s2", "s4"), ("s1", "s3")
EACH_FAILED = [f"\n- switch {name} " for name in FAILING]


@pytest.fixture
def lab(call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The address of each of four switches: two lose frames, and two, of which one is the first, have no program."""
    for name in ("STATE_DIR", "RUN_DIR"):
        monkeypatch.setenv(f"CATCHMENT_{name}", str(tmp_path / name))
    path = tmp_path / "lab.yaml"
    monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(path))
    monkeypatch.setenv("CATCHMENT_TIMEOUT", "60")
    with ExitStack() as exits:
        addresses = {
            name: exits.enter_context(RunningFake(FakeSwitch(p4info=fake_p4info() if name in LIVING else None))).address
            for name in sorted(LIVING + FAILING)
        }
        switches, hosts = [], []
        for number, (name, address) in enumerate(addresses.items(), start=1):
            ip, mac = f"10.0.{number}", f"02:00:00:00:0{number}"
            switches.append(f"  {name}: {{program: luwu.p4, ip: {ip}.254, mac: {mac}:fe, grpc: '{address}'}}\n")
            hosts.append(f"  w{number}: {{ip: {ip}.1/24, mac: {mac}:01, link: '{name}:1'}}\n")
        path.write_text("".join(("name: lab\nswitches:\n", *switches, "hosts:\n", *hosts)))
        for name in LIVING:
            call("fault", "set", name, "--loss", "0.25", "--type", "PA", "--direction", "ingress")
        yield addresses


def _lossy(address: str) -> bool:
    with SwitchClient.connect(address, read_only=True, timeout=60.0) as client:
        return bool(losses(client))


def test_the_other_switches_lose_their_faults(call: Run, lab: dict[str, str]) -> None:
    said = call("fault", "clear", code=1)
    assert not any(_lossy(lab[name]) for name in LIVING)
    assert said.startswith("catchment: 2 of 4 switches failed\n")
    assert all(line in said for line in EACH_FAILED)
    one = call("fault", "clear", "s3", code=1)
    assert one.startswith("catchment: switch s3 ") and "switches failed" not in one
    assert call("fault", "clear", "s2") == "nothing is damaged on purpose on s2\n"


@pytest.mark.usefixtures("lab")
@pytest.mark.parametrize("verb", [("fault", "list"), ("stats",)])
def test_the_other_switches_are_shown(verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    shown, said = _outputs(capsys, *verb)
    assert all(name in shown for name in LIVING)
    assert all(line in said for line in EACH_FAILED)
    shown, said = _outputs(capsys, *verb, "--json")
    assert {one["switch"] for one in json.loads(shown) if one.get("up", True)} == set(LIVING)
    assert all(line in said for line in EACH_FAILED)


def _outputs(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """The two outputs of a verb that fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["catchment", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
    assert end.value.code == 1
    return capsys.readouterr()
