"""The demo as a whole: bits equal to one process with integer sums, and near to one with float sums."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from relay_network import RelayNetwork
from rich.console import Console

from catchment.demo import LabError, TrainingOptions, run
from catchment.demo.compare import TOLERANCE
from catchment.demo.outcome import Outcome, PassLosses
from catchment.host.optimizer.store import Store
from catchment.host.optimizer.store.check import check
from catchment.sim.golden import formats
from catchment.sim.lab import events
from catchment.sim.lab.members import ProcessMember
from catchment.sim.training import reference
from catchment.sim.training.data import load_corpus
from catchment.sim.training.model import Decoder
from catchment.sim.training.reference import Reference
from catchment.sim.training.root import digest_of
from catchment.sim.training.twin import ExactSum, train_exactly

pytestmark = pytest.mark.usefixtures("one_thread")


def _quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[TrainingOptions, Outcome]:
    options = TrainingOptions(
        workers=3,
        preset="tiny",
        steps=12,
        batch=2,
        evaluate=5,
        network="memory",
        output=tmp_path_factory.mktemp("demo"),
    )
    return options, run(options, _quiet())


@pytest.mark.sampled(4)
def test_the_run_has_the_bits_of_one_process_with_integer_sums(finished: tuple[TrainingOptions, Outcome]) -> None:
    options, outcome = finished
    losses = PassLosses(options.workers)
    twin = train_exactly(options, len(options.passes), lambda _event, **facts: _note(losses, facts))
    assert losses.rows() == outcome.losses
    assert digest_of(twin.master) == outcome.digest
    assert outcome.comparison is not None
    assert outcome.comparison.exact
    assert outcome.comparison.equal_passes == len(options.passes)


@pytest.mark.sampled(4)
def test_the_run_is_near_to_one_process_with_float_sums_but_not_the_same(
    finished: tuple[TrainingOptions, Outcome],
) -> None:
    options, outcome = finished
    losses = PassLosses(options.workers)
    trained = reference.train(options, lambda _event, **facts: _note(losses, facts))
    assert losses.rows() == outcome.reference_losses
    assert np.abs(np.array(losses.rows()) - np.array(outcome.losses)).max() < TOLERANCE[options.wire_type] / 10
    assert digest_of(trained.master) != outcome.digest


def test_out_of_core_the_bits_are_the_same(finished: tuple[TrainingOptions, Outcome], tmp_path: Path) -> None:
    options, outcome = finished
    stored = replace(options, out_of_core=True, reference=False, output=tmp_path)
    for _ in range(2):  # the second run replaces the store of the first
        assert run(stored, _quiet()).digest == outcome.digest
    with Store.open(stored.store_places()) as store:
        assert store.state.trained == options.steps
        assert list(store.snapshots) == ["step-5", "step-10"]
        assert check(store) == []


def test_the_loss_falls(finished: tuple[TrainingOptions, Outcome]) -> None:
    _, outcome = finished
    assert np.mean(outcome.losses[-1]) < np.mean(outcome.losses[0]) - 0.3


def _note(losses: PassLosses, facts: dict[str, Any]) -> None:
    for worker, loss in enumerate(facts["losses"]):
        losses.add(facts["index"], worker, loss, 0.0)


def test_each_steps_gradient_is_within_the_formats_bound() -> None:
    """The bound for each element: |in-network sum - exact sum| <= W * 2^(E+h-31), plus fp32 rounding of the result."""
    options = TrainingOptions(workers=4, preset="tiny", steps=8, batch=2, network="memory")
    single = Reference(options, load_corpus())
    sums = [ExactSum(name, options.workers) for name, _ in single.model.named_parameters()]
    h = formats.headroom(options.workers)
    largest_share = 0.0
    for step in range(options.steps):
        single.round_parameters()
        by_worker = [single.gradients(worker, step)[1] for worker in range(options.workers)]
        means: list[torch.Tensor | None] = []
        for total, parts in zip(sums, zip(*by_worker, strict=True), strict=True):
            bound = options.workers * 2.0 ** (total.exponent + h - 31)
            summed = total.total(list(parts))
            assert summed is not None
            exact = np.sum([part.numpy().astype(np.float64) for part in parts], axis=0)
            error = np.abs(summed.numpy().astype(np.float64) - exact)
            assert (error <= bound + np.abs(exact) * 2.0**-24).all()
            largest_share = max(largest_share, float((error / bound).max()))
            means.append(summed / options.workers)
        single.update(means, step)
    assert largest_share > 0.1  # the bound is not idle


def test_the_report_stands_alone_and_says_what_was_measured(finished: tuple[TrainingOptions, Outcome]) -> None:
    options, outcome = finished
    page = (options.output / "report.html").read_text()
    for needed in (outcome.digest, f"{outcome.parameters:,}", "ring all-reduce", "ZeRO-3", "the same bits", "42.9%"):
        assert needed in page
    assert page.count("<svg") == 5
    assert not re.search(r'(?:src|href)="http', page)
    assert not re.search(r"<script|<link|@import", page)
    assert str(Path.cwd()) not in page
    saved = json.loads((options.output / "report.json").read_text())
    assert saved["losses"] == outcome.losses
    assert {span["kind"] for span in saved["timeline"]["w0"]} >= {"forward", "backward", "push"}
    assert {span["kind"] for span in saved["timeline"]["opt"]} >= {"push", "pull", "update"}


def test_the_trained_weights_load_into_the_model(finished: tuple[TrainingOptions, Outcome]) -> None:
    options, outcome = finished
    model = Decoder(options.shape)
    model.load_state_dict(torch.load(options.output / "weights.pt"))
    assert digest_of(model.parameters()) == outcome.digest


def test_workers_hold_a_part_of_the_model_only(finished: tuple[TrainingOptions, Outcome]) -> None:
    _, outcome = finished
    for memory in outcome.worker_memory:
        assert 0 < memory["peak_parameter_bytes"] < memory["model_bytes"]


@pytest.mark.sampled(4)
def test_a_difference_fails_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[PassLosses] = []  # each object has means of its own, and lives as long as this test

    def mean(self: PassLosses, index: int) -> float:
        if not any(self is one for one in seen):
            seen.append(self)
        return float(next(number for number, one in enumerate(seen) if self is one))

    monkeypatch.setattr(PassLosses, "mean", mean)
    options = TrainingOptions(workers=2, preset="tiny", steps=2, batch=1, network="memory", output=tmp_path)
    with pytest.raises(LabError, match="differs from the same training in one process"):
        run(options, _quiet())


@pytest.mark.sampled(4)
def test_real_endpoints_in_processes_under_loss_give_the_same_bits(tmp_path: Path, seed: int) -> None:
    def train(folder: str, **faults: float) -> Outcome:
        options = TrainingOptions(
            workers=2,
            preset="tiny",
            steps=3,
            batch=2,
            reference=False,
            lanes=64,
            timeout=120.0,
            output=tmp_path / folder,
        )
        return run(options, _quiet(), network=lambda chosen: RelayNetwork(chosen, seed=seed, **faults))

    clean = train("clean")
    lossy = train("lossy", loss=0.02, duplicate=0.02, reorder=0.02)
    assert clean.losses == lossy.losses
    assert clean.digest == lossy.digest
    computed, measured = clean.volumes[:2]
    assert (computed["scheme"], measured["scheme"]) == ("LuWu", "LuWu, measured")
    assert computed["sent"] < measured["sent"]
    assert computed["received"] < measured["received"]
    losses = PassLosses(2)
    options = TrainingOptions.from_json(clean.options)
    twin = train_exactly(options, len(options.passes), lambda _event, **facts: _note(losses, facts))
    assert losses.rows() == clean.losses
    assert digest_of(layer for layer in twin.master) == clean.digest


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGKILL, "w1: process {pid} was ended by SIGKILL")])
def test_a_worker_that_dies_ends_the_demo_by_name(tmp_path: Path, number: signal.Signals, expected: str) -> None:
    options = TrainingOptions(
        workers=2, preset="tiny", steps=500, batch=2, reference=False, lanes=64, timeout=120.0, output=tmp_path
    )
    network = RelayNetwork(options)
    started: list[ProcessMember] = []

    def on_first_pass(name: str, event: dict[str, Any]) -> None:
        if name == "w1" and event["event"] == events.PASS and not started:
            started.append(network.members["w1"])
            os.kill(network.members["w1"].pid, number)

    watched = _Watching(network, on_first_pass)
    with pytest.raises(LabError) as caught:
        run(options, _quiet(), network=lambda _options: watched)
    assert expected.format(pid=started[0].pid) in str(caught.value)
    for member in network.members.values():
        with pytest.raises(ProcessLookupError):
            os.kill(member.pid, 0)


class _Watching:
    """A RelayNetwork whose events are seen by a test as they are delivered."""

    def __init__(self, network: RelayNetwork, seen: Any) -> None:
        self._network, self._seen = network, seen
        self.describe, self.counters, self.diagnosis = network.describe, network.counters, network.diagnosis

    def __enter__(self) -> Any:
        self._network.__enter__()
        return self

    def __exit__(self, *reason: Any) -> None:
        self._network.__exit__(*reason)

    def start(self, host: str, plan: Any, deliver: Any) -> ProcessMember:
        def both(name: str, event: dict[str, Any]) -> None:
            deliver(name, event)
            self._seen(name, event)

        return self._network.start(host, plan, both)


@pytest.mark.sampled(4)
def test_an_unreachable_switch_ends_the_demo_within_its_timeout(tmp_path: Path) -> None:
    options = TrainingOptions(
        workers=2, preset="tiny", steps=5, batch=2, reference=False, lanes=64, timeout=1.0, output=tmp_path
    )
    network = RelayNetwork(options)
    network.relay.silent = True
    with pytest.raises(LabError, match=r"switch 127\.0\.0\.1"):
        run(options, _quiet(), network=lambda _options: network)
