"""scikit-learn's interface to least squares."""

# ruff: noqa: N803, N806  X is scikit-learn's name

from __future__ import annotations

from typing import Any, Self

from sklearn.base import RegressorMixin

from catchment.host.glm.errors import GlmError
from catchment.host.glm.fitting import Trained
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Floats
from catchment.host.glm.training import Runner, Training
from catchment.wire.generated.glm_numbers import BANKS, FRACTION_DEFAULT


class GLMRegressor(RegressorMixin, Trained):  # type: ignore[misc]
    """Linear regression by least squares, trained by P4SGD's workers.

    Args:
        workers, engines, bits, batch, micro_batch, rate, decay, fraction, parallel: as `Training` has them.
        max_iter, fit_intercept, random_state, runner: as for `GLMClassifier`.

    Attributes:
        model_: the `Model`.
        coef_, intercept_: shape (features,) and a number, for features as they are.
        reports_: loss and R squared by epoch, of all samples alike; of the last `partial_fit`.
        rate_: the learning rate.
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train; X is a matrix, dense or sparse, of shape (samples, features), y has a number each.

        Args:
            X, y: the samples.
            sample_weight: what each sample's loss is multiplied by, shape (samples,), 0 or more; None: 1.

        Raises:
            GlmError: an option or the samples are refused, or the workers failed.
            ValueError: as scikit-learn's estimators.
        """
        training = self._training(Loss.SQUARES)
        X, y = self._validated(X, y, numeric=True)
        self._go(X, y, training, self._weights(X, sample_weight), None)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Go on for one epoch over these samples.

        The first call decides the ranges of the features and of the targets, to which later samples are cut (targets
        to four times theirs), and the learning rate; `fit` is a first call too.

        Raises:
            GlmError, ValueError: as for `fit`.
        """
        first = not hasattr(self, "model_")
        X, y = self._validated(X, y, numeric=True, first=first)
        before = None if first else self.model_
        begun, rate = (0, self.rate) if first else (self.n_iter_, self.rate_)
        training = self._training(Loss.SQUARES, epochs=1, begun=begun, rate=rate)
        self._go(X, y, training, self._weights(X, sample_weight), before)
        return self

    def _go(self, X: Any, y: Any, training: Training, weights: Any, before: Model | None) -> None:
        model, self.reports_, self.rate_ = self._train(X, y, training, sample_weight=weights, after=before)
        self._keep(model)
        self.n_iter_ = training.begun + training.epochs

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
        made.reports_, made.n_iter_, made.rate_ = [], 0, None
        return made
