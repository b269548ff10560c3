"""The demo on a real switch without Mininet or root: processes on shared-memory ports."""

from __future__ import annotations

import io
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from catchment.demo import LabError, TrainingOptions, run
from catchment.demo.outcome import Outcome
from catchment.demo.shm_network import ShmNetwork
from catchment.demo.switch_network import SwitchNetwork
from catchment.sim.lab import events
from catchment.sim.lab.members import Deliver, Member, ProcessMember
from catchment.sim.lab.mininet import preflight
from catchment.sim.lab.mininet.preflight import NoNamespacesError
from catchment.sim.training.options import Plan

pytestmark = pytest.mark.usefixtures("one_thread")


class Watched(ShmNetwork):
    """Tells a test of each event, and keeps the members."""

    def __init__(self, options: TrainingOptions, seen: Callable[[Watched, str, dict[str, Any]], None]) -> None:
        super().__init__(options)
        self._seen = seen
        self.members: dict[str, ProcessMember] = {}

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        def both(name: str, event: dict[str, Any]) -> None:
            deliver(name, event)
            self._seen(self, name, event)

        member = super().start(host, plan, both)
        assert isinstance(member, ProcessMember)
        self.members[host] = member
        return member


def options(folder: Path, **changed: Any) -> TrainingOptions:
    small: dict[str, Any] = {"workers": 2, "preset": "tiny", "steps": 4, "batch": 2, "lanes": 64, "timeout": 120.0}
    return TrainingOptions(**{**small, "network": "shm", "output": folder, **changed})


def trained(folder: Path, **changed: Any) -> Outcome:
    return run(options(folder, **changed), Console(file=io.StringIO()))


@pytest.mark.sampled(2)
def test_processes_on_a_lossy_switch_have_the_bits_of_one_process(tmp_path: Path) -> None:
    outcome = trained(tmp_path, workers=3, loss=0.01)
    assert outcome.comparison is not None
    assert outcome.comparison.exact
    assert min(outcome.drops["FAULT_INGRESS"], outcome.drops["FAULT_EGRESS"]) > 0
    assert set(outcome.drops) <= {"FAULT_INGRESS", "FAULT_EGRESS", "OLD_SEQ"}


@pytest.mark.sampled(4)
def test_several_optimizer_nodes_have_a_switch_each_and_the_same_bits(tmp_path: Path) -> None:
    alone = trained(tmp_path / "alone", network="memory", reference=False)
    outcome = trained(tmp_path / "two", roots=2, reference=False)
    assert (outcome.digest, outcome.losses) == (alone.digest, alone.losses)


@pytest.mark.sampled(4)
def test_who_dies_or_hangs_is_named_and_nobody_is_left(tmp_path: Path, rng: random.Random) -> None:
    who, how = rng.choice(["w0", "w1", "opt"]), rng.choice([signal.SIGKILL, signal.SIGSTOP])
    hit: list[str] = []

    def on_first_pass(network: Watched, name: str, event: dict[str, Any]) -> None:
        if name == "w1" and event["event"] == events.PASS and not hit:
            hit.append(who)
            os.kill(network.members[who].pid, how)

    chosen = options(tmp_path, steps=500, reference=False, timeout=5.0)
    network = Watched(chosen, on_first_pass)
    said = {
        signal.SIGKILL: rf"{who}: process \d+ was ended by SIGKILL",
        signal.SIGSTOP: rf"when it stalled: {who} \(port \d of switch s1\) is silent",
    }
    with pytest.raises(LabError, match=said[how]):
        run(chosen, Console(file=io.StringIO()), network=lambda _: network)
    for member in network.members.values():
        with pytest.raises(ProcessLookupError):
            os.kill(member.pid, 0)


@pytest.mark.sampled(4)
def test_a_switch_that_dies_is_said(tmp_path: Path) -> None:
    killed: list[int] = []

    def on_first_pass(network: Watched, name: str, event: dict[str, Any]) -> None:
        if name == "w0" and event["event"] == events.PASS and not killed:
            killed.append(network.labs["opt"].switch.pid)
            os.kill(killed[0], signal.SIGKILL)

    chosen = options(tmp_path, steps=500, reference=False, timeout=5.0)
    with pytest.raises(LabError, match="the switch ended with code -9"):
        run(chosen, Console(file=io.StringIO()), network=lambda _: Watched(chosen, on_first_pass))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target": "bmv2"}, "only the embedded switch has shared-memory ports"),
        ({"restart": "w0@1", "roots": 2, "out_of_core": True}, "--network mininet"),
    ],
)
def test_what_it_cannot_do_is_refused(wrong: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=said):
        options(tmp_path, **wrong)


def test_who_may_not_make_namespaces_is_told_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse() -> None:
        raise NoNamespacesError("an emulated network needs root")

    monkeypatch.setattr(preflight, "check", refuse)
    with pytest.raises(LabError, match="needs root; or take --network shm"), SwitchNetwork(TrainingOptions()):
        pass
