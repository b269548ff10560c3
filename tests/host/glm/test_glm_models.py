"""Trainings and models from outside: they learn, are saved, agree with scikit-learn's, and refuse what cannot be."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from glm_data import random_samples
from sklearn.datasets import load_breast_cancer, load_diabetes

from catchment.host.glm import GlmError, LocalRunner, Loss, Model, Parallel, Samples, Training, prepare, train


@pytest.fixture
def draw(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.randrange(1 << 32))


def _trained(samples: Samples, training: Training) -> Model:
    return train(prepare(samples, training), LocalRunner())[0]


@pytest.mark.parametrize("loss", [Loss.LOGISTIC, Loss.HINGE])
@pytest.mark.parametrize("parallel", list(Parallel))
def test_a_classification_is_learned(loss: Loss, parallel: Parallel) -> None:
    cancer = load_breast_cancer()
    training = Training(loss=loss, workers=4, engines=2, epochs=30, batch=32, parallel=parallel)
    prepared = prepare(Samples.of(cancer.data, cancer.target), training)
    model, reports = train(prepared, LocalRunner())
    assert reports[-1].loss < reports[0].loss / 3 and reports[-1].score > 0.93
    assert np.mean(model.predict(cancer.data) == cancer.target) == pytest.approx(reports[-1].score)


def test_a_regression_is_learned() -> None:
    diabetes = load_diabetes()
    training = Training(loss=Loss.SQUARES, bits=8, epochs=150, batch=16)
    model = _trained(Samples.of(diabetes.data, diabetes.target), training)
    predicted = model.predict(diabetes.data)
    residual = np.sum((predicted - diabetes.target) ** 2) / np.sum((diabetes.target - diabetes.target.mean()) ** 2)
    assert residual < 0.6
    assert np.allclose(model.to_sklearn().predict(diabetes.data), predicted, rtol=0.05, atol=3)


@pytest.mark.parametrize("loss", list(Loss))
@pytest.mark.parametrize("density", [1.0, 0.05])
def test_scikit_learn_s_form_is_the_model(draw: np.random.Generator, loss: Loss, density: float) -> None:
    """The features' quantization at 16 bits is below what a comparison of floats sees."""
    samples = random_samples(draw, 200, 60, density=density, loss=loss)
    model = _trained(samples, Training(loss=loss, bits=16, epochs=5, batch=16, bias=bool(draw.integers(2))))
    fitted = model.to_sklearn()
    values = samples.matrix.toarray()
    if loss == Loss.SQUARES:
        assert np.allclose(fitted.predict(values), model.predict(values), rtol=1e-3, atol=1e-2)
        return
    scores = model.decision_function(values)
    assert np.allclose(fitted.decision_function(values), scores, rtol=1e-3, atol=1e-3)
    certain = np.abs(scores) > 1e-2
    assert np.array_equal(fitted.predict(values)[certain], model.predict(values)[certain])
    assert set(model.predict(values)) <= {2.0, 5.0}


@pytest.mark.parametrize("loss", list(Loss))
def test_a_model_is_saved_and_loaded(draw: np.random.Generator, tmp_path: Path, loss: Loss) -> None:
    samples = random_samples(draw, 60, 20, loss=loss)
    model = _trained(samples, Training(loss=loss, epochs=2, batch=8))
    model.save(tmp_path / "model.npz")
    loaded = Model.load(tmp_path / "model.npz")
    assert np.array_equal(loaded.predict(samples.matrix), model.predict(samples.matrix))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        coefficients, intercept = model.linear()
        assert np.array_equal(arrays["coef_"], coefficients) and arrays["intercept_"] == intercept


def test_files_that_are_no_models(draw: np.random.Generator, tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with pytest.raises(GlmError, match="No such file"):
        Model.load(path)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(GlmError, match="is no model"):
        Model.load(path)
    np.savez(path, weights=np.zeros(3))
    with pytest.raises(GlmError, match="is no model"):
        Model.load(path)
    _trained(random_samples(draw, 20, 5), Training(epochs=1, batch=8)).save(path)
    with np.load(path) as arrays:
        found = dict(arrays)
    damages = {
        "format": np.array("something else"),
        "weights": np.zeros(3, np.int32),
        "bits": np.array(77),
        "loss": np.array("absolute"),
        "span": np.zeros(2),
        "low": np.full_like(found["low"], np.nan),
        "classes": np.ones(1),
        "target": np.ones(3),
    }
    for name, value in damages.items():
        np.savez(path, **{**found, name: value})
        with pytest.raises(GlmError, match="is no model"):
            Model.load(path)
    np.savez(path, **{**found, "span": -found["span"]})
    with pytest.raises(GlmError, match="no ranges"):
        Model.load(path)
    whole = tmp_path / "whole.npz"
    np.savez(whole, **found)
    path.write_bytes(whole.read_bytes()[:300])
    with pytest.raises(GlmError, match="is no model"):
        Model.load(path)
    with pytest.raises(GlmError, match="No such file"):
        Model.load(whole).save(tmp_path / "no" / "model.npz")


def test_new_samples_beyond_the_range_are_cut(draw: np.random.Generator) -> None:
    samples = random_samples(draw, 50, 4)
    model = _trained(samples, Training(epochs=3, batch=8))
    high = samples.matrix.toarray().max(axis=0)
    assert model.decision_function(sp.csr_array([high * 1e9])) == model.decision_function(sp.csr_array([high]))
    with pytest.raises(GlmError, match="samples of 5 features"):
        model.predict(np.zeros((1, 5)))


def test_one_class_against_the_others(draw: np.random.Generator) -> None:
    samples = random_samples(draw, 90, 6)
    three = Samples(samples.matrix, np.arange(90.0) % 3)
    with pytest.raises(GlmError, match=r"3 classes \(0, 1, 2\).*--positive"):
        prepare(three, Training())
    prepared = prepare(three, Training(epochs=1, batch=8), positive=2.0)
    assert np.count_nonzero(prepared.labels == 1) == 30
    model, _ = train(prepared, LocalRunner())
    assert {2.0} >= {value for value in model.predict(samples.matrix) if np.isfinite(value)}
    with pytest.raises(GlmError, match="class 7 and others are needed"):
        prepare(three, Training(), positive=7.0)
    with pytest.raises(GlmError, match="positive class for least squares"):
        prepare(three, Training(loss=Loss.SQUARES), positive=2.0)
    with pytest.raises(GlmError, match=r"1 class \(1\).*samples of both"):
        prepare(Samples(samples.matrix, np.ones(90)), Training())


def test_a_range_beyond_floats_is_refused() -> None:
    values = np.array([[1.0, 1e308], [2.0, -1e308]])
    with pytest.raises(GlmError, match=r"feature 1 .* is -1e\+308 to 1e\+308"):
        prepare(Samples.of(values, [0, 1]), Training())


def test_a_rate_that_is_chosen_has_a_step() -> None:
    """Samples of few features ask for a rate beyond the largest step of small mini-batches."""
    samples = Samples.of(sp.eye_array(60, format="csr"), np.arange(60) % 2)
    training = Training(batch=8, bias=False, fraction=22)
    prepared = prepare(samples, training)
    assert prepared.training.rate is not None and prepared.training.rate > 0.99 * training.numbers.rates[1]


def test_a_feature_that_never_differs_is_nothing(draw: np.random.Generator) -> None:
    values = draw.random((40, 3))
    values[:, 1] = 7.5
    prepared = prepare(Samples.of(values, draw.integers(0, 2, 40)), Training(batch=8))
    assert not prepared.encoded.planes()[:, 1].any()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"micro_batch": 12}, "micro-batches of 12"),
        ({"micro_batch": 128}, "micro-batches of 128 samples in mini-batches of 64"),
        ({"batch": 20, "micro_batch": 20}, "micro-batches of 20"),
        ({"workers": 0}, "0 workers"),
        ({"engines": 9}, "9 engines"),
        ({"bits": 0}, "0 bits"),
        ({"epochs": 0}, "0 epochs"),
        ({"decay": -1.0}, "a decay of -1"),
        ({"decay": float("nan")}, "a decay of nan"),
        ({"rate": -1.0}, "learning rate of -1"),
        ({"rate": float("inf")}, "learning rate of inf"),
        ({"rate": 1e9}, "learning rate of"),
        ({"fraction": 12}, "12 fraction bits"),
        ({"seed": -2}, "seed -2"),
    ],
)
def test_options_that_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(GlmError, match=says):
        Training(**options)  # type: ignore[arg-type]


def test_native_workers_refuse_what_would_break_them() -> None:
    from catchment.host import _glm
    from catchment.host.glm.numbers import sigmoid_table

    table = sigmoid_table().astype(np.int32)
    labels, codes = np.ones(2, np.int32), np.zeros((2, 3), np.uint8)
    rest = {"loss": "hinge", "forward_shift": 4, "sigmoid": table}
    worker = _glm.Worker.dense(codes, labels, **rest)
    with pytest.raises(IndexError):
        worker.forward(1, np.zeros(2, np.int32))
    with pytest.raises(IndexError):
        worker.update(1, 0, 3)
    for wrong in (
        lambda: worker.update(0, 2, 63),
        lambda: worker.backward(0, np.zeros(2, np.int32), 1 << 16),
        lambda: worker.take_gradient(0, np.zeros(2, np.int32)),
        lambda: _glm.Worker.dense(codes, labels[:1], **rest),
        lambda: _glm.Worker.dense(codes, labels, **{**rest, "sigmoid": table[:5]}),
        lambda: _glm.Worker.dense(codes, labels, **{**rest, "loss": "other"}),
        lambda: _sparse(_glm, [0, 1, 5], [0, 1], rest),
        lambda: _sparse(_glm, [0, 2, 1], [0], rest),
        lambda: _sparse(_glm, [0, 1, 2], [0, 3], rest),
        lambda: _sparse(_glm, [0, 1, 2], [0, -1], rest),
    ):
        with pytest.raises(ValueError):  # noqa: PT011  each says something else
            wrong()


def _sparse(module: object, offsets: list[int], columns: list[int], rest: dict[str, object]) -> object:
    return module.Worker.sparse(  # type: ignore[attr-defined]
        np.array(offsets),
        np.array(columns, np.int32),
        np.ones(len(columns), np.uint16),
        3,
        np.ones(2, np.int32),
        **rest,
    )
