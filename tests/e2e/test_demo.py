"""The demo through a real switch in Mininet: exact, unharmed by loss, and never hanging."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lab import ROOT
from rich.console import Console

from catchment.controlplane.topology import Target
from catchment.demo import LabError, TrainingOptions, run
from catchment.demo.switch_network import SwitchNetwork
from catchment.sim.lab.members import Deliver, Member
from catchment.sim.lab.mininet.naming import interface_prefix
from catchment.sim.training.options import Plan

LANES = {Target.EMBEDDED: 64, Target.BMV2: 8}
STEPS = {Target.EMBEDDED: 4, Target.BMV2: 2}  # one takes BMv2 twenty seconds or more


@pytest.fixture
def options(target: Target, tmp_path: Path) -> Callable[..., TrainingOptions]:
    def make(name: str, **chosen: Any) -> TrainingOptions:
        values: dict[str, Any] = {
            "workers": 3, "preset": "tiny", "steps": STEPS[target], "batch": 2, "lanes": LANES[target],
            "target": str(target), "reference": False, "output": tmp_path / name, "name": f"e2e-{name}-{os.getpid()}",
        }  # fmt: skip
        return TrainingOptions(**{**values, **chosen})

    return make


class WatchedNetwork(SwitchNetwork):
    """A SwitchNetwork that calls `seen(network, host)` at the first event after all have begun to train."""

    def __init__(self, options: TrainingOptions, seen: Callable[[WatchedNetwork, str], None]) -> None:
        super().__init__(options)
        self.members: dict[str, Any] = {}
        self._seen: Callable[[WatchedNetwork, str], None] | None = seen

    def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
        def watched(name: str, event: dict[str, Any]) -> None:
            deliver(name, event)
            if event["event"] == "pass" and event["index"] == 2 and self._seen is not None:
                seen, self._seen = self._seen, None
                seen(self, name)

        self.members[host] = super().start(host, plan, watched)
        return self.members[host]

    def kill_switch(self) -> None:
        """End the switch as a crash would."""
        self._network.kill_switch("s1")


def _quiet() -> Console:
    return Console(file=io.StringIO())


def _failure(options: TrainingOptions, seen: Callable[[WatchedNetwork, str], None]) -> tuple[str, WatchedNetwork]:
    """Run a demo that must fail: its message and its network."""
    network = WatchedNetwork(options, lambda net, host: (blows.append(host), seen(net, host))[1])
    blows: list[str] = []
    with pytest.raises(LabError) as caught:
        run(options, _quiet(), network=lambda _options: network)
    assert blows, f"the demo ended before anything was broken: {caught.value}"
    for member in network.members.values():
        with pytest.raises(ProcessLookupError):
            os.kill(member.pid, 0)
    return str(caught.value), network


@pytest.mark.sampled(4)
def test_loss_changes_no_bit(options: Callable[..., TrainingOptions]) -> None:
    clean = run(options("clean", reference=True), _quiet())
    lossy = run(options("lossy", loss=0.01), _quiet())
    assert clean.comparison is not None
    assert clean.comparison.exact
    assert clean.losses == lossy.losses
    assert clean.digest == lossy.digest
    assert lossy.drops, "the switch was to drop frames"


@pytest.mark.slow
def test_packed_gradients_take_half_of_the_bytes(options: Callable[..., TrainingOptions]) -> None:
    """The bits of its twin under loss, half of the workers' bytes, and a loss as with lanes of 32 bits."""
    whole = run(options("whole", loss=0.01), _quiet())
    packed = run(options("packed", loss=0.01, gradients="int16", reference=True), _quiet())
    assert packed.comparison is not None
    assert packed.comparison.exact
    assert packed.losses[-1] == pytest.approx(whole.losses[-1], rel=0.01)
    for worker in ("w0", "w1", "w2"):
        vectors = [_vectors(outcome.endpoint_stats[worker]) for outcome in (whole, packed)]
        assert 0.5 <= vectors[1] / vectors[0] < 0.52, vectors


def _vectors(stats: dict[str, int]) -> int:
    return stats["frames_sent"] - stats["heartbeats_sent"] - stats["retransmissions"]


@pytest.mark.sampled(4)
def test_two_optimizer_nodes_have_the_bits_of_one(options: Callable[..., TrainingOptions]) -> None:
    shared = run(options("shared", roots=2, reference=True, loss=0.01), _quiet())
    assert shared.comparison is not None
    assert shared.comparison.exact
    page = (options("shared", roots=2).output / "report.html").read_text()
    assert "Links of the optimizer nodes" in page
    down = [shared.endpoint_stats[name]["bytes_sent"] for name in ("opt0", "opt1")]
    assert min(down) > 0.3 * sum(down)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("victim", ["opt1", pytest.param("w0", marks=pytest.mark.slow)])
def test_a_host_that_is_killed_comes_back_while_the_others_live(
    options: Callable[..., TrainingOptions], victim: str
) -> None:
    """The other processes are those that began; the bits are those of one process that nobody killed."""
    said = io.StringIO()
    steps = 8
    chosen = options(
        "again", roots=2, out_of_core=True, reference=True, steps=steps, evaluate=2, restart=f"{victim}@{steps // 2}",
        timeout=20.0,
    )  # fmt: skip
    started: list[str] = []

    class Counting(SwitchNetwork):
        def start(self, host: str, plan: Plan, deliver: Deliver) -> Member:
            started.append(host)
            return super().start(host, plan, deliver)

    outcome = run(chosen, Console(file=said, width=200), network=Counting)
    assert outcome.comparison is not None
    assert outcome.comparison.exact
    assert sorted(started) == sorted([*chosen.worker_names, *chosen.root_names, victim])
    text = said.getvalue()
    assert f"step {steps // 2}: {victim} is killed, and started again" in text
    assert f"all others wait: {victim} is lost: its connection ended" in text
    assert "which all optimizer nodes have on disk" in text


@pytest.mark.sampled(4)
def test_a_dead_worker_is_named(options: Callable[..., TrainingOptions]) -> None:
    def kill(network: WatchedNetwork, _host: str) -> None:
        os.kill(network.members["w1"].pid, signal.SIGKILL)

    message, network = _failure(options("dead", steps=5000), kill)
    assert f"w1: process {network.members['w1'].pid} was ended by SIGKILL" in message


@pytest.mark.sampled(4)
def test_a_worker_that_stands_still_is_named(options: Callable[..., TrainingOptions]) -> None:
    def stop(network: WatchedNetwork, _host: str) -> None:
        os.kill(network.members["w2"].pid, signal.SIGSTOP)

    message, _ = _failure(options("still", steps=5000, timeout=6.0), stop)
    assert "w2 (port 3 of switch s1)" in message or "w2 is lost: not heard" in message


@pytest.mark.sampled(4)
def test_a_dead_switch_is_named(options: Callable[..., TrainingOptions]) -> None:
    message, _ = _failure(options("switch", steps=5000), lambda network, _host: network.kill_switch())
    assert "s1" in message


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing_behind(options: Callable[..., TrainingOptions], number: signal.Signals) -> None:
    chosen = options("interrupted", steps=5000)
    command = [
        "env", "--default-signal=HUP",
        sys.executable, "-m", "catchment.demo", "--preset", "tiny", "--steps", "5000", "--workers", "2",
        "--no-reference",
        "--lanes", str(chosen.lanes), "--target", chosen.target, "--output", str(chosen.output), "--name", chosen.name,
    ]  # fmt: skip
    # SIGTERM stands for Ctrl-C as well: the demo handles both alike, and a shell in between may ignore SIGINT
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert any("step" in line for line in process.stdout)
        process.send_signal(number)
        assert "interrupted" in process.stdout.read()
        assert process.wait(120) == 130
    marked = [path for path in Path("/proc").glob("[0-9]*/environ") if chosen.name.encode() in _bytes_of(path)]
    assert marked == []
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    assert interface_prefix(chosen.name) not in links


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
