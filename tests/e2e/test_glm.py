"""P4SGD over a real network: `glm train` gives the golden model's weights with frames lost on the way."""

from __future__ import annotations

import random

import numpy as np
import pytest

from host.glm import LocalRunner, Loss, Samples, Training, prepare, train
from sim.glm.labs import LabKind
from sim.glm.network_runner import NetworkRunner

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("drop", [0.0, 0.05])
def test_training_in_mininet(drop: float, rng: random.Random) -> None:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    values = draw.random((150, 200))
    scores = values @ draw.standard_normal(200)
    samples = Samples.of(values, np.where(scores > np.median(scores), 1, -1))
    prepared = prepare(samples, Training(loss=Loss.LOGISTIC, workers=4, batch=32, epochs=2))
    wanted, _ = train(prepared, LocalRunner())
    model, reports = train(prepared, NetworkRunner(LabKind.MININET, loss=drop))
    assert np.array_equal(model.weights, wanted.weights)
    assert sum(report.facts["retransmissions"] for report in reports[1:]) > 0 or not drop
