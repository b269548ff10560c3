"""scikit-learn's interface: classifiers and regressors whose `fit` trains on workers.

    GLMClassifier(workers=8, bits=4).fit(X, y).predict(X)
    GLMClassifier(workers=8, runner=NetworkRunner(LabKind.SHM)).fit(X, y)  # sim.glm: processes behind a switch

A module of its own, as importing scikit-learn takes a second.
"""

# ruff: noqa: N803, N806  X is scikit-learn's name

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from catchment.host.glm.errors import GlmError
from catchment.host.glm.local import LocalRunner
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Floats, Samples
from catchment.host.glm.training import Parallel, Report, Runner, Training, prepare, train
from catchment.wire.generated.glm_numbers import BANKS, FRACTION_DEFAULT

if TYPE_CHECKING:
    from sklearn.utils import Tags

_SEEDS = 1 << 31
_Choice = TypeVar("_Choice", bound=StrEnum)


class _Trained(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What classifiers and regressors have in common; parameters are those of `Training`.

    A value that `Training` refuses is refused by `fit`, as scikit-learn's estimators do.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, *, numeric: bool) -> tuple[Any, Any]:
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, multi_output=False
        )

    def _train(self, X: Any, labels: Any, loss: Loss) -> tuple[Model, list[Report]]:
        """One training of numbers or of labels 0 and 1."""
        training = Training(
            loss=loss,
            workers=self.workers,
            engines=self.engines,
            bits=self.bits,
            batch=self.batch,
            micro_batch=self.micro_batch,
            epochs=self.max_iter,
            rate=self.rate,
            decay=self.decay,
            fraction=self.fraction,
            bias=self.fit_intercept,
            seed=_seed_of(self.random_state),
            parallel=_one_of(Parallel, self.parallel, "what is parallel"),
        )
        return train(prepare(Samples.of(X, labels), training), self.runner or LocalRunner())

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _loaded(self, model: Model) -> None:
        self.workers, self.bits, self.fraction = 1, model.bits, model.fraction
        self.fit_intercept = model.normaliser.bias
        self.n_features_in_ = model.normaliser.features


class GLMClassifier(ClassifierMixin, _Trained):  # type: ignore[misc]
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
        reports_: each model's loss and accuracy by epoch.
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

    def fit(self, X: Any, y: Any) -> Self:
        """Train; X is a matrix, dense or sparse, of shape (samples, features), y has a class each.

        Raises:
            GlmError: an option or the samples are refused, or the workers failed.
            ValueError: as scikit-learn's estimators.
        """
        loss = _one_of((Loss.LOGISTIC, Loss.HINGE), self.loss, "the loss of a classifier")
        X, y = self._validated(X, y, numeric=False)
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        if len(self.classes_) < 2:
            raise ValueError(f"one class, {self.classes_[0]!r}, where a classifier needs two")
        wanted = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        trained = [self._train(X, (y == each).astype(np.float64), loss) for each in wanted]
        self._keep([model for model, _ in trained])
        self.reports_ = [reports for _, reports in trained]
        self.n_iter_ = np.full(len(trained), self.max_iter)
        return self

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
            raise GlmError(f"a model of the class {classes[1]:g} against others", "train with two classes")
        made = cls(model.loss.value)
        made._loaded(model)
        made.classes_ = classes
        made._keep([model])
        made.reports_, made.n_iter_ = [], np.array([0])
        return made


class GLMRegressor(RegressorMixin, _Trained):  # type: ignore[misc]
    """Linear regression by least squares, trained by P4SGD's workers.

    Args:
        workers, engines, bits, batch, micro_batch, rate, decay, fraction, parallel: as `Training` has them.
        max_iter, fit_intercept, random_state, runner: as for `GLMClassifier`.

    Attributes:
        model_: the `Model`.
        coef_, intercept_: shape (features,) and a number, for features as they are.
        reports_: loss and R squared by epoch.
        n_iter_, n_features_in_, feature_names_in_: as scikit-learn has them.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        engines: int = 1,
        bits: int = 8,
        batch: int = 16,
        micro_batch: int = BANKS,
        max_iter: int = 100,
        rate: float | None = None,
        decay: float = 0.0,
        fraction: int = FRACTION_DEFAULT,
        fit_intercept: bool = True,
        random_state: Any = 1,
        parallel: str = "model",
        runner: Runner | None = None,
    ) -> None:
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

    def fit(self, X: Any, y: Any) -> Self:
        """Train; X is a matrix, dense or sparse, of shape (samples, features), y has a number each.

        Raises:
            GlmError: an option or the samples are refused, or the workers failed.
            ValueError: as scikit-learn's estimators.
        """
        X, y = self._validated(X, y, numeric=True)
        model, self.reports_ = self._train(X, y, Loss.SQUARES)
        self._keep(model)
        self.n_iter_ = self.max_iter
        return self

    def _keep(self, model: Model) -> None:
        self.model_ = model
        self.coef_, self.intercept_ = model.linear()

    def predict(self, X: Any) -> Floats:
        """The target of each sample, features quantized as in training."""
        rows = self._rows(X)
        return self.model_.predict(rows)

    @classmethod
    def from_model(cls, model: Model) -> Self:
        """A fitted estimator of a model that was trained and saved elsewhere.

        Raises:
            GlmError: it is a classification.
        """
        if model.targets.classes is not None:
            raise GlmError(f"a model of the loss {model.loss.value}", "take GLMClassifier")
        made = cls()
        made._loaded(model)
        made._keep(model)
        made.reports_, made.n_iter_ = [], 0
        return made


def _seed_of(random_state: Any) -> int | None:
    """Give a number itself, or a generator's next draw."""
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    return int(check_random_state(random_state).randint(_SEEDS))


def _one_of(choices: Iterable[_Choice], name: str, what: str) -> _Choice:
    for choice in choices:
        if choice == name:
            return choice
    raise GlmError(f"{name!r} as {what}", f"one of {', '.join(choices)}")
