"""What scikit-learn's classifiers and regressors have in common when `fit` trains on workers."""

# ruff: noqa: N803  X is scikit-learn's name

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, check_random_state, validate_data

from catchment.host.glm.errors import GlmError
from catchment.host.glm.local import LocalRunner
from catchment.host.glm.model import Model
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Samples
from catchment.host.glm.training import Parallel, Report, Training, prepare, train

if TYPE_CHECKING:
    from sklearn.utils import Tags

_SEEDS = 1 << 31
_Choice = TypeVar("_Choice", bound=StrEnum)


class Trained(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What classifiers and regressors have in common; parameters are those of `Training`.

    A value that `Training` refuses is refused by `fit`, as scikit-learn's estimators do.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validated(self, X: Any, y: Any, *, numeric: bool, first: bool = True) -> tuple[Any, Any]:
        return validate_data(  # type: ignore[no-any-return]
            self, X, y, reset=first, accept_sparse="csr", dtype=np.float64, y_numeric=numeric, multi_output=False
        )

    def _weights(self, X: Any, sample_weight: Any) -> Any:
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)

    def _training(self, loss: Loss, **others: Any) -> Training:
        options: dict[str, Any] = {
            "loss": loss,
            "workers": self.workers,
            "engines": self.engines,
            "bits": self.bits,
            "batch": self.batch,
            "micro_batch": self.micro_batch,
            "epochs": self.max_iter,
            "rate": self.rate,
            "decay": self.decay,
            "fraction": self.fraction,
            "bias": self.fit_intercept,
            "seed": _seed_of(self.random_state),
            "parallel": one_of(Parallel, self.parallel, "what is parallel"),
        }
        return Training(**{**options, **others})

    def _train(self, X: Any, labels: Any, training: Training, **how: Any) -> tuple[Model, list[Report], float | None]:
        """One training of numbers or of labels 0 and 1: its model, reports and rate; `how`: of `prepare`."""
        prepared = prepare(Samples.of(X, labels), training, **how)
        model, reports = train(prepared, self.runner or LocalRunner())
        return model, reports, prepared.rate

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)

    def _loaded(self, model: Model) -> None:
        self.workers, self.bits, self.fraction = 1, model.bits, model.fraction
        self.fit_intercept = model.normaliser.bias
        self.n_features_in_ = model.normaliser.features


def _seed_of(random_state: Any) -> int | None:
    """Give a number itself, or a generator's next draw."""
    if random_state is None or isinstance(random_state, Integral):
        return None if random_state is None else int(random_state)
    return int(check_random_state(random_state).randint(_SEEDS))


def one_of(choices: Iterable[_Choice], name: str, what: str) -> _Choice:
    for choice in choices:
        if choice == name:
            return choice
    raise GlmError(f"{name!r} as {what}", f"one of {', '.join(choices)}")
