"""The estimators keep scikit-learn's conventions, by its own checks, and train what the command trains."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from catchment.host.glm import GlmError, LocalRunner, Model, Samples, Training, prepare, train
from catchment.host.glm.estimators import GLMClassifier, GLMRegressor


def _expected(_estimator: Any) -> dict[str, str]:
    """Checks that fail for SGDClassifier, too: the order of samples counts, and a sample twice is two steps."""
    why = "a weight multiplies a sample's step; a repeated sample takes part in other mini-batches"
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@parametrize_with_checks([GLMClassifier(), GLMRegressor()], expected_failed_checks=_expected)
def test_scikit_learn_s_conventions(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_a_fit_is_a_training(tmp_path: Path) -> None:
    """The same model as of `train`, before and after it is saved."""
    cancer = load_breast_cancer()
    names = np.array(["malign", "benign"])
    fitted = GLMClassifier(workers=3, max_iter=5).fit(cancer.data, names[cancer.target])
    wanted, _ = train(
        prepare(Samples.of(cancer.data, cancer.target == 0), Training(workers=3, epochs=5)), LocalRunner()
    )
    assert fitted.classes_.tolist() == ["benign", "malign"]
    assert np.array_equal(fitted.models_[0].weights, wanted.weights)
    assert fitted.score(cancer.data, names[cancer.target]) > 0.9
    wanted.save(tmp_path / "model.npz")
    loaded = GLMClassifier.from_model(Model.load(tmp_path / "model.npz"))
    assert np.array_equal(loaded.decision_function(cancer.data), fitted.decision_function(cancer.data))
    assert np.array_equal(loaded.coef_, fitted.coef_) and loaded.predict(cancer.data).max() == 1.0
    with pytest.raises(GlmError, match="GLMRegressor"):
        GLMClassifier.from_model(GLMRegressor(max_iter=1).fit(cancer.data, cancer.target).model_)
    with pytest.raises(GlmError, match="GLMClassifier"):
        GLMRegressor.from_model(wanted)


def test_more_than_two_classes() -> None:
    iris = load_iris()
    fitted = GLMClassifier("hinge", bits=8, batch=8, max_iter=60).fit(iris.data, iris.target)
    assert fitted.coef_.shape == (3, 4) and fitted.decision_function(iris.data).shape == (150, 3)
    assert fitted.score(iris.data, iris.target) > 0.8


def test_a_regression(tmp_path: Path) -> None:
    diabetes = load_diabetes()
    fitted = GLMRegressor(random_state=np.random.RandomState(3)).fit(diabetes.data, diabetes.target)
    assert fitted.score(diabetes.data, diabetes.target) > 0.4
    assert np.allclose(
        diabetes.data @ fitted.coef_ + fitted.intercept_, fitted.predict(diabetes.data), atol=3, rtol=0.05
    )
    fitted.model_.save(tmp_path / "model.npz")
    loaded = GLMRegressor.from_model(Model.load(tmp_path / "model.npz"))
    assert np.array_equal(loaded.predict(diabetes.data), fitted.predict(diabetes.data))


def test_searches_and_folds() -> None:
    cancer = load_breast_cancer()
    found = GridSearchCV(GLMClassifier(max_iter=5), {"bits": [1, 4], "runner": [None, LocalRunner()]}, cv=2)
    found.fit(cancer.data, cancer.target)
    assert found.best_score_ > 0.85
    assert cross_val_score(clone(found.best_estimator_), cancer.data, cancer.target, cv=2).min() > 0.8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"loss": "squares"}, "one of logistic, hinge"),
        ({"workers": 0}, "0 workers"),
        ({"bits": 17}, "17 bits"),
        ({"random_state": -1}, "the seed -1"),
        ({"parallel": "both"}, "one of model, data"),
    ],
)
def test_options_that_fit_refuses(options: dict[str, Any], says: str) -> None:
    with pytest.raises(GlmError, match=says):
        GLMClassifier(**options).fit(np.eye(4), [0, 1, 0, 1])
