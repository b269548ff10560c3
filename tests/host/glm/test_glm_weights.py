"""sample_weight, partial_fit and predict_proba, as scikit-learn's own estimators have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from catchment.host.glm import GlmError, LocalRunner, Model, Samples, Training, prepare, train
from catchment.host.glm.estimators import GLMClassifier, GLMRegressor
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.network_runner import NetworkRunner


def test_probabilities_are_the_sigmoid_of_the_activations() -> None:
    cancer = load_breast_cancer()
    fitted = GLMClassifier(bits=8, max_iter=30).fit(cancer.data, cancer.target)
    found = fitted.predict_proba(cancer.data)
    assert found.shape == (len(cancer.target), 2)
    assert np.allclose(found.sum(axis=1), 1)
    assert np.array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(cancer.data))
    assert np.allclose(np.log(found[:, 1] / found[:, 0]), fitted.decision_function(cancer.data))
    assert np.array_equal(fitted.predict_log_proba(cancer.data), np.log(found))
    twin = LogisticRegression(max_iter=1)
    twin.classes_, twin.coef_, twin.intercept_ = fitted.classes_, fitted.coef_, fitted.intercept_
    assert np.abs(twin.predict_proba(cancer.data) - found).max() < 0.05  # features are of 8 bits


def test_probabilities_of_more_than_two_classes() -> None:
    iris = load_iris()
    names = iris.target_names[iris.target]
    fitted = GLMClassifier(bits=8, batch=8, max_iter=40).fit(iris.data, names)
    found = fitted.predict_proba(iris.data)
    assert found.shape == (150, 3)
    assert np.allclose(found.sum(axis=1), 1)
    assert fitted.classes_.tolist() == sorted(iris.target_names)
    assert np.array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(iris.data))


def test_a_support_vector_machine_has_no_probabilities() -> None:
    fitted = GLMClassifier("hinge", max_iter=1).fit(np.eye(4), [0, 1, 0, 1])
    assert not hasattr(fitted, "predict_proba")
    assert hasattr(GLMClassifier(), "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_log_proba'"):
        fitted.predict_log_proba(np.eye(4))


def test_weights_move_the_solution_where_scikit_learn_s_go() -> None:
    """Least squares have one solution; the weighted one is reached, and not the other."""
    rng = np.random.default_rng(3)
    x = rng.random((400, 2))
    y = np.where(x[:, 0] > 0.5, 3 * x[:, 1], -x[:, 1])
    weights = np.where(x[:, 0] > 0.5, 4.0, 0.25)
    wanted, plain = LinearRegression().fit(x, y, weights), LinearRegression().fit(x, y)
    fitted = GLMRegressor(bits=12, batch=16, max_iter=400).fit(x, y, weights)
    right, wrong = wanted.predict(x), plain.predict(x)
    assert np.abs(fitted.predict(x) - right).mean() < np.abs(wrong - right).mean() / 5


def test_a_weight_of_zero_is_no_sample() -> None:
    iris = load_iris()
    weights = np.where(iris.target == 2, 0.0, 1.0)
    fitted = GLMClassifier(max_iter=3).fit(iris.data, iris.target, sample_weight=weights)
    without = GLMClassifier(max_iter=3).fit(iris.data[:100], iris.target[:100])
    assert fitted.classes_.tolist() == [0, 1]
    assert np.array_equal(fitted.models_[0].weights, without.models_[0].weights)


def test_one_epoch_at_a_time_is_a_fit() -> None:
    """The order of the samples is left alone; the decay of the rate goes on, too."""
    cancer = load_breast_cancer()
    options: dict[str, Any] = {"random_state": None, "decay": 0.5, "workers": 2}
    whole = GLMClassifier(max_iter=4, **options).fit(cancer.data, cancer.target)
    step = GLMClassifier(**options)
    for _ in range(4):
        step.partial_fit(cancer.data, cancer.target, classes=[0, 1])
    assert np.array_equal(step.models_[0].weights, whole.models_[0].weights)
    assert step.n_iter_.tolist() == [4]
    diabetes = load_diabetes()
    regression = GLMRegressor(max_iter=3, **options).fit(diabetes.data, diabetes.target)
    steps = GLMRegressor(**options)
    for _ in range(3):
        steps.partial_fit(diabetes.data, diabetes.target)
    assert np.array_equal(steps.model_.weights, regression.model_.weights)
    regression.partial_fit(diabetes.data, diabetes.target)
    steps.partial_fit(diabetes.data, diabetes.target)
    assert np.array_equal(steps.model_.weights, regression.model_.weights)


def test_samples_that_come_in_parts() -> None:
    iris = load_iris()
    fitted = GLMClassifier(bits=8, batch=8, rate=1.0)
    order = np.random.default_rng(1).permutation(150)
    fitted.partial_fit(iris.data[order], iris.target[order], classes=np.unique(iris.target))
    for _ in range(20):
        for part in np.array_split(order, 10):
            fitted.partial_fit(iris.data[part], iris.target[part])
        fitted.partial_fit(iris.data[:10], iris.target[:10])  # one class
    assert fitted.score(iris.data, iris.target) > 0.8
    assert fitted.coef_.shape == (3, 4)


def test_going_on_from_a_model_of_a_file(tmp_path: Any) -> None:
    cancer = load_breast_cancer()
    fitted = GLMClassifier(max_iter=2, random_state=None, rate=0.1).fit(cancer.data, cancer.target)
    fitted.models_[0].save(tmp_path / "model.npz")
    loaded = GLMClassifier.from_model(Model.load(tmp_path / "model.npz")).set_params(rate=0.1, random_state=None)
    loaded.rates_ = [0.1]
    for each in (fitted, loaded):
        each.partial_fit(cancer.data, cancer.target)
    assert np.array_equal(fitted.models_[0].weights, loaded.models_[0].weights)


def test_behind_a_switch() -> None:
    cancer = load_breast_cancer()
    weights = np.linspace(0, 3, len(cancer.target))
    found = []
    for runner in (None, NetworkRunner(LabKind.SHM)):
        fitted = GLMClassifier(workers=2, max_iter=1, runner=runner)
        fitted.fit(cancer.data, cancer.target, weights).partial_fit(cancer.data, cancer.target, sample_weight=weights)
        found.append(fitted.models_[0].weights)
    assert np.array_equal(*found)


def test_what_scikit_learn_builds_on_them() -> None:
    cancer = load_breast_cancer()
    base = GLMClassifier(max_iter=5)
    boosted = AdaBoostClassifier(base, n_estimators=3, random_state=0).fit(cancer.data, cancer.target)
    assert boosted.score(cancer.data, cancer.target) > 0.8
    calibrated = CalibratedClassifierCV(clone(base), cv=2).fit(cancer.data, cancer.target)
    assert calibrated.predict_proba(cancer.data).shape == (len(cancer.target), 2)


X, Y = np.eye(4), np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: GLMClassifier().fit(X, Y, [1, 2]), ValueError, "sample_weight.shape"),
        (lambda: GLMClassifier().fit(X, Y, [1, -1, 1, 1]), ValueError, "Negative values"),
        (lambda: GLMClassifier().fit(X, Y, [1, np.nan, 1, 1]), ValueError, "NaN"),
        (lambda: GLMClassifier().fit(X, Y, [1, 0, 1, 0]), ValueError, "1 class of samples that count"),
        (lambda: GLMRegressor().fit(X, Y, np.zeros(4)), ValueError, "at least one non-zero"),
        (lambda: GLMClassifier().partial_fit(X, Y), ValueError, "classes must be passed on the first call"),
        (lambda: GLMClassifier().partial_fit(X, Y, classes=[0, 2]), ValueError, r"labels \[1\] are none of"),
        (lambda: GLMClassifier().partial_fit(X, Y * 0, classes=[0]), ValueError, "one class"),
        (lambda: GLMClassifier().fit(X, Y).partial_fit(X, Y, classes=[0, 1, 2]), ValueError, "not those of the first"),
        (lambda: GLMClassifier().fit(X, Y).partial_fit(X[:, :3], Y), ValueError, "3 features"),
        (lambda: GLMClassifier().fit(X, Y).set_params(bits=8).partial_fit(X, Y), GlmError, "bits 8 to go on"),
        (lambda: GLMClassifier(rate=1.0).fit(X, Y, [1e9, 1, 1, 1]), GlmError, "a learning rate of 1000000000"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_weights_that_a_training_refuses() -> None:
    samples = Samples.of(X, Y)
    for weights, says in (([0.0] * 4, "no sample has"), ([1.0, -1, 1, 1], "negative"), ([1.0], "give one a sample")):
        with pytest.raises(GlmError, match=says):
            prepare(samples, Training(), sample_weight=np.array(weights))


def test_hardware_has_no_weights() -> None:
    from catchment.sim.glm.rtl_runner import RtlRunner

    prepared = prepare(Samples.of(X, Y), Training(epochs=1), sample_weight=np.array([1.0, 2, 3, 4]))
    with pytest.raises(GlmError, match="no sample weights"):
        train(prepared, RtlRunner())
    assert train(prepared, LocalRunner())[0].weights.any()
