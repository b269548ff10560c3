"""P4SGD over a real network: `glm train` gives the golden model's weights with frames lost on the way."""

from __future__ import annotations

import random

import numpy as np
import pytest
from glm_watched import Watched, failure, prepared_samples

from catchment.host.glm import LocalRunner, Loss, Samples, Training, prepare, train
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.network_runner import NetworkRunner

pytestmark = pytest.mark.e2e
ENDLESS = 100_000


@pytest.mark.parametrize(("drop", "faults"), [(0.0, ""), (0.05, ""), (0.0, "loss=0.05,dup=0.1,reorder=0.1")])
def test_training_in_mininet(drop: float, faults: str, rng: random.Random) -> None:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    values = draw.random((150, 200))
    scores = values @ draw.standard_normal(200)
    samples = Samples.of(values, np.where(scores > np.median(scores), 1, -1))
    prepared = prepare(samples, Training(loss=Loss.LOGISTIC, workers=4, batch=32, epochs=2))
    wanted, _ = train(prepared, LocalRunner())
    model, reports = train(prepared, NetworkRunner(LabKind.MININET, loss=drop, faults=faults))
    assert np.array_equal(model.weights, wanted.weights)
    assert sum(report.facts["retransmissions"] for report in reports[1:]) > 0 or not (drop or faults)


@pytest.mark.sampled(4)
def test_a_worker_that_is_killed_is_named(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, prepared = Watched(monkeypatch), prepared_samples(rng, 3, ENDLESS)
    said = failure(prepared, NetworkRunner(LabKind.MININET), watched.kill_worker)
    assert "w1: process" in said and "SIGKILL" in said
    assert watched.nothing_is_left()


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("harm", "says"), [("kill_switch", "is lost"), ("restart_switch", "s1")])
def test_a_switch_that_ends_is_named(harm: str, says: str, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that comes back has neither program nor sums: the workers give up and the switch is named."""
    watched, prepared = Watched(monkeypatch), prepared_samples(rng, 2, ENDLESS)
    runner = NetworkRunner(LabKind.MININET, timeout=15.0)
    said = failure(prepared, runner, lambda: getattr(watched.labs[0].network, harm)("s1"))
    assert "the switch s1" in said and says in said
    assert watched.nothing_is_left()
