"""The C++ workers give the golden model's weights, bit for bit, for every layout, loss and partition."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from glm_data import random_samples

from catchment.host.glm import LocalRunner, Loss, Parallel, Prepared, Samples, Shares, Training, prepare, train
from catchment.host.glm.weave import weave
from catchment.sim.golden import glm as golden


@pytest.fixture
def draw(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.randrange(1 << 32))


def golden_model(prepared: Prepared) -> golden.Ints:
    """The weights after all epochs, by the definition."""
    training, shares = prepared.training, prepared.shares
    codes = prepared.encoded.planes()
    labels = prepared.labels.astype(np.int64)
    importance = None if prepared.importance is None else prepared.importance.astype(np.int64)
    if training.parallel == Parallel.DATA:
        whole = Shares(shares.features, 1, shares.engines)
        replicas = [
            golden.workers_of(codes, whole, training.numbers, training.loss)[0] for _ in range(training.workers)
        ]
        for replica in replicas if prepared.start is not None else ():
            replica.resume(prepared.start.astype(np.int64))
        for step in prepared.steps:
            golden.train_epoch_data_parallel(replicas, labels, step, importance)
        return golden.model_of(replicas[:1], whole)
    workers = golden.workers_of(codes, shares, training.numbers, training.loss)
    for wid, worker in enumerate(workers) if prepared.start is not None else ():
        share = shares.of_worker(wid)
        worker.resume(prepared.start[share.start : share.stop].astype(np.int64))
    for step in prepared.steps:
        golden.train_epoch(workers, labels, step, importance)
    return golden.model_of(workers, shares)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("density", [1.0, 0.04])
@pytest.mark.parametrize("bits", [1, 4, 8, 9, 16])
def test_local_training(draw: np.random.Generator, loss: Loss, density: float, bits: int) -> None:
    samples = random_samples(draw, int(draw.integers(9, 60)), int(draw.integers(1, 260)), density=density, loss=loss)
    training = Training(
        loss=loss,
        workers=int(draw.integers(1, 5)),
        engines=int(draw.integers(1, 4)),
        bits=bits,
        batch=int(draw.choice([8, 16, 24])),
        epochs=2,
        decay=0.3,
        fraction=int(draw.choice([16, 20, 24])),
        rate=0.05,
    )
    prepared = prepare(samples, training)
    model, reports = train(prepared, LocalRunner())
    assert np.array_equal(model.weights, golden_model(prepared)), training
    assert len(reports) == 3


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("workers", [1, 3])
def test_data_parallel_training(draw: np.random.Generator, loss: Loss, workers: int) -> None:
    samples = random_samples(draw, 75, 40, loss=loss)
    prepared = prepare(samples, Training(loss=loss, workers=workers, batch=32, epochs=2, parallel=Parallel.DATA))
    model, _ = train(prepared, LocalRunner())
    assert np.array_equal(model.weights, golden_model(prepared))


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("parallel", list(Parallel))
@pytest.mark.parametrize("density", [1.0, 0.04])
def test_weighed_samples_from_a_model_on(
    draw: np.random.Generator, loss: Loss, parallel: Parallel, density: float
) -> None:
    samples = random_samples(draw, 53, 150, density=density, loss=loss)
    options = {"loss": loss, "workers": 3, "engines": 2, "batch": 16, "rate": 0.05, "parallel": parallel, "decay": 0.2}
    first, _ = train(prepare(samples, Training(epochs=1, **options)), LocalRunner())
    weights = draw.choice([0.0, 1e-3, 0.5, 1.0, 2.5, 3.0], 53)
    prepared = prepare(samples, Training(epochs=2, begun=1, **options), sample_weight=weights, after=first)
    assert prepared.importance is not None and len(prepared.importance) == np.count_nonzero(weights)
    model, reports = train(prepared, LocalRunner())
    assert np.array_equal(model.weights, golden_model(prepared))
    assert not np.array_equal(model.weights, train(replace(prepared, importance=None), LocalRunner())[0].weights)
    assert not np.array_equal(model.weights, train(replace(prepared, start=None), LocalRunner())[0].weights)
    assert len(reports) == 3


def test_weights_of_one_change_nothing_and_one_scale_changes_the_rate(draw: np.random.Generator) -> None:
    samples = random_samples(draw, 40, 20)
    training = Training(rate=0.1, epochs=2, batch=8)
    plain, _ = train(prepare(samples, training), LocalRunner())
    ones, _ = train(prepare(samples, training, sample_weight=np.ones(40)), LocalRunner())
    assert np.array_equal(plain.weights, ones.weights)
    threes, _ = train(prepare(samples, training, sample_weight=np.full(40, 3.0)), LocalRunner())
    faster, _ = train(prepare(samples, replace(training, rate=0.1 * 3.0)), LocalRunner())
    assert np.array_equal(threes.weights, faster.weights)
    automatic = [prepare(samples, Training(), sample_weight=np.full(40, w)) for w in (1.0, 3.0)]
    assert automatic[0].steps == automatic[1].steps


def test_what_is_cut_is_the_same(draw: np.random.Generator) -> None:
    """A rate that makes least squares diverge: activations, derivatives and weights saturate.

    One training in some hundreds is not cut: then another.
    """
    training = Training(loss=Loss.SQUARES, bits=4, batch=8, rate=7.9, epochs=60, fraction=20)
    for _ in range(10):
        prepared = prepare(random_samples(draw, 64, 70, loss=Loss.SQUARES), training)
        model, reports = train(prepared, LocalRunner())
        assert np.array_equal(model.weights, golden_model(prepared))
        if reports[-1].saturated > 0:
            return
    pytest.fail("nothing was cut: this test tests nothing")


def test_columns_whose_zeros_are_not_code_0(draw: np.random.Generator) -> None:
    """A few features with negative values among many sparse ones."""
    import scipy.sparse as sp

    values = np.abs(draw.standard_normal((50, 300))) * (draw.random((50, 300)) < 0.03)
    values[:, 7] *= -1
    values[3, 7], values[4, 200] = -2.0, -0.5
    samples = Samples.of(sp.csr_array(values), np.where(draw.random(50) < 0.5, 1, 0))
    prepared = prepare(samples, Training(workers=2, epochs=2, batch=16, rate=1.0))
    assert isinstance(prepared.encoded.rows, sp.csr_array)
    whole = prepared.normaliser.encode(sp.csr_array(values), 4).planes() >> 12
    low, high = values.min(axis=0), values.max(axis=0)
    share = np.where(high > low, (values - low) / np.where(high > low, high - low, 1), 0)
    assert np.array_equal(whole[:, :300], np.rint(share * 15)) and np.all(whole[:, 300] == 15)
    model, _ = train(prepared, LocalRunner())
    assert np.array_equal(model.weights, golden_model(prepared))


@pytest.mark.parametrize(("samples", "features", "engines"), [(1, 1, 1), (17, 200, 2), (8, 640, 3), (23, 64, 8)])
def test_weaving(draw: np.random.Generator, samples: int, features: int, engines: int) -> None:
    codes = draw.integers(0, 1 << 16, (samples, features), dtype=np.uint16)
    shares = Shares(features, 1, engines)
    assert np.array_equal(weave(codes, shares), golden.weave(codes, shares))
