"""scikit-learn's interface to logistic regression and linear SVMs."""

# ruff: noqa: N803, N806  X is scikit-learn's name

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from catchment.host.glm.errors import GlmError
from catchment.host.glm.fitting import Trained, one_of
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Floats
from catchment.host.glm.targets import Targets, class_name
from catchment.host.glm.training import Runner, Training
from catchment.wire.generated.glm_numbers import BANKS, FRACTION_DEFAULT

_TWO_CLASSES = Targets((0.0, 1.0))


class GLMClassifier(ClassifierMixin, Trained):  # type: ignore[misc]
    """Logistic regression or a linear SVM, trained by P4SGD's workers; more than two classes one against the others.

    Args:
        loss: "logistic" or "hinge".
        workers, engines, bits, batch, micro_batch, rate, decay, fraction, parallel: as `Training` has them.
        max_iter: epochs.
        fit_intercept: with a constant feature.
        random_state: of the order of the samples; None leaves them as they are.
        runner: where the workers are; None: in this process. All runners give the same model.

    Attributes:
        classes_: shape (classes,).
        models_: a `Model` for two classes, else one a class; they give 1 for `classes_[1]`, or for their class.
        coef_, intercept_: shapes (1 or classes, features) and (1 or classes,), for features as they are.
        reports_: each model's loss and accuracy by epoch, of all samples alike; of the last `partial_fit`.
        rates_: each model's learning rate.
        n_iter_, n_features_in_, feature_names_in_: as scikit-learn has them.
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        workers: int = 1,
        engines: int = 1,
        bits: int = 4,
        batch: int = 64,
        micro_batch: int = BANKS,
        max_iter: int = 20,
        rate: float | None = None,
        decay: float = 0.0,
        fraction: int = FRACTION_DEFAULT,
        fit_intercept: bool = True,
        random_state: Any = 1,
        parallel: str = "model",
        runner: Runner | None = None,
    ) -> None:
        self.loss = loss
        self.workers = workers
        self.engines = engines
        self.bits = bits
        self.batch = batch
        self.micro_batch = micro_batch
        self.max_iter = max_iter
        self.rate = rate
        self.decay = decay
        self.fraction = fraction
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.parallel = parallel
        self.runner = runner

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train; X is a matrix, dense or sparse, of shape (samples, features), y has a class each.

        Args:
            X, y: the samples.
            sample_weight: what each sample's loss is multiplied by, shape (samples,), 0 or more; None: 1.

        Raises:
            GlmError: an option or the samples are refused, or the workers failed.
            ValueError: as scikit-learn's estimators.
        """
        training = self._training(self._loss())
        X, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        weights = self._weights(X, sample_weight)
        found = unique_labels(y if weights is None else y[weights > 0])
        if len(found) < 2:
            raise ValueError(f"{len(found)} class of samples that count, where a classifier needs two")
        self.classes_ = found
        self._train_all(X, y, [training] * len(self._wanted()), weights, [None] * len(self._wanted()))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on for one epoch over these samples.

        The first call decides the features' ranges, to which later samples are cut, and the learning rate; `fit` is
        a first call too.

        Args:
            X, y: the samples; not all classes need be among them.
            classes: all classes; at the first call.
            sample_weight: as for `fit`.

        Raises:
            GlmError, ValueError: as for `fit`; a class that was not named.
        """
        loss = self._loss()
        first = not hasattr(self, "models_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        X, y = self._validated(X, y, numeric=False, first=first)
        check_classification_targets(y)
        named = self.classes_ if classes is None else unique_labels(classes)
        if not first and not np.array_equal(named, self.classes_):
            raise ValueError(f"classes {named} are not those of the first call, {self.classes_}")
        strange = np.setdiff1d(unique_labels(y), named)
        if len(strange):
            raise ValueError(f"labels {strange} are none of the classes {named}")
        if len(named) < 2:
            raise ValueError(f"one class, {named[0]!r}, where a classifier needs two")
        self.classes_ = named
        before: list[Model | None] = [None] * len(self._wanted()) if first else list(self.models_)
        begun = 0 if first else int(self.n_iter_[0])
        rates = [self.rate] * len(before) if first else self.rates_
        trainings = [self._training(loss, epochs=1, begun=begun, rate=rate) for rate in rates]
        self._train_all(X, y, trainings, self._weights(X, sample_weight), before)
        return self

    def _loss(self) -> Loss:
        return one_of((Loss.LOGISTIC, Loss.HINGE), self.loss, "the loss of a classifier")

    def _wanted(self) -> Any:
        """The class that each model tells from the others."""
        return self.classes_[1:] if len(self.classes_) == 2 else self.classes_

    def _train_all(
        self, X: Any, y: Any, trainings: Sequence[Training], weights: Any, before: Sequence[Model | None]
    ) -> None:
        trained = [
            self._train(
                X, (y == each).astype(np.float64), how, sample_weight=weights, targets=_TWO_CLASSES, after=model
            )
            for each, how, model in zip(self._wanted(), trainings, before, strict=True)
        ]
        self._keep([model for model, _, _ in trained])
        self.reports_ = [reports for _, reports, _ in trained]
        self.rates_ = [rate for _, _, rate in trained]
        self.n_iter_ = np.array([how.begun + how.epochs for how in trainings])

    def _keep(self, models: list[Model]) -> None:
        self.models_ = models
        linear = [model.linear() for model in models]
        self.coef_ = np.array([coefficients for coefficients, _ in linear])
        self.intercept_ = np.array([intercept for _, intercept in linear])

    def decision_function(self, X: Any) -> Floats:
        """Activations, features quantized as in training; shape (samples,) for two classes, else (samples, classes)."""
        X = self._rows(X)
        found = [model.decision_function(X) for model in self.models_]
        return found[0] if len(found) == 1 else np.column_stack(found)

    def predict(self, X: Any) -> Any:
        """The class of each sample."""
        activations = self.decision_function(X)
        chosen = (activations > 0).astype(np.intp) if activations.ndim == 1 else activations.argmax(axis=1)
        return self.classes_[chosen]

    def _logistic(self) -> bool:
        if self.loss != Loss.LOGISTIC:
            raise AttributeError(f"the loss {self.loss} says nothing about probabilities: take 'logistic'")
        return True

    @available_if(_logistic)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, shape (samples, classes); of more than two, one against the others, scaled."""
        activations = self.decision_function(X)
        if activations.ndim == 1:
            right = expit(activations)
            return np.column_stack([1 - right, right])
        found: Floats = expit(activations)
        total = found.sum(axis=1, keepdims=True)
        np.divide(found, total, out=found, where=total > 0)
        found[total[:, 0] == 0] = 1 / found.shape[1]
        return found

    @available_if(_logistic)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            found: Floats = np.log(self.predict_proba(X))
        return found

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """A fitted estimator of a model that was trained and saved elsewhere: `from_model(Model.load(path))`.

        Raises:
            GlmError: it is a regression, or its other classes have no name.
        """
        if model.targets.classes is None:
            raise GlmError(f"a model of the loss {model.loss.value}", "take GLMRegressor")
        classes = np.array(model.targets.classes)
        if np.isnan(classes[0]):
            raise GlmError(f"a model of the class {class_name(classes[1])} against others", "train with two classes")
        made = cls(model.loss.value)
        made._loaded(model)
        made.classes_ = classes
        made._keep([model])
        made.reports_, made.n_iter_, made.rates_ = [], np.array([0]), [None]
        return made
