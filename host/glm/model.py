"""A trained model: integers with all that is needed to use them on new samples; npz files, scikit-learn's form."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.host.glm.encoding import Normaliser
from catchment.host.glm.errors import GlmError
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Floats, rows_of
from catchment.host.glm.targets import Targets
from catchment.wire.generated.glm_numbers import FRACTION_LEAST, FRACTION_MOST, PLANES

_FORMAT = "catchment glm 1"
_WANTED = "name a model that `glm train` saved"


@dataclass(frozen=True, slots=True)
class Model:
    """Weights in the numbers they were trained in.

    Attributes:
        weights: int32, shape (features,), the bias last if there is one.
        loss: they were trained for.
        bits: of a feature.
        fraction: fraction bits of a weight.
        normaliser: from values to codes.
        targets: from activations to classes or targets.
    """

    weights: NDArray[np.int32]
    loss: Loss
    bits: int
    fraction: int
    normaliser: Normaliser
    targets: Targets

    @property
    def real_weights(self) -> Floats:
        """The weights of normalised features."""
        return self.weights.astype(np.float64) * 2.0**-self.fraction

    def decision_function(self, matrix: Any) -> Floats:
        """Activations of samples, their features quantized as in training; shape (samples,).

        Raises:
            GlmError: not a matrix, or another number of features.
        """
        encoded = self.normaliser.encode(rows_of(matrix), self.bits)
        return encoded.activations(self.real_weights)

    def predict(self, matrix: Any) -> Floats:
        """The class, or the target, of samples; errors as for `decision_function`."""
        return self.targets.predictions(self.decision_function(matrix))

    def linear(self) -> tuple[Floats, float]:
        """Coefficients and intercept for features as they are: what the model is without quantization of features."""
        scale = 1.0 - 2.0**-self.bits  # the largest code, which stands for the end of a feature's range
        weights = self.real_weights
        features = self.normaliser.features
        span = self.normaliser.span
        coefficients = np.divide(weights[:features] * scale, span, out=np.zeros(features), where=span > 0)
        intercept = float(weights[features] * scale) if self.normaliser.bias else 0.0
        intercept -= float(coefficients @ self.normaliser.low)
        if self.targets.classes is None:
            return coefficients * self.targets.scale, self.targets.offset + self.targets.scale * intercept
        return coefficients, intercept

    def to_sklearn(self) -> Any:
        """A fitted estimator of scikit-learn: LogisticRegression, LinearSVC or LinearRegression."""
        from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: PLC0415  takes a second
        from sklearn.svm import LinearSVC  # noqa: PLC0415

        coefficients, intercept = self.linear()
        if self.targets.classes is None:
            regression = LinearRegression()
            regression.coef_, regression.intercept_ = coefficients, intercept
            fitted: Any = regression
        else:
            fitted = LogisticRegression() if self.loss == Loss.LOGISTIC else LinearSVC()
            fitted.coef_, fitted.intercept_ = coefficients[None, :], np.array([intercept])
            fitted.classes_ = np.array(self.targets.classes)
            fitted.n_iter_ = np.array([0])
        fitted.n_features_in_ = self.normaliser.features
        return fitted

    def save(self, path: Path) -> None:
        """Write an .npz: the integers and constants, and `coef_`, `intercept_` as scikit-learn has them.

        Raises:
            GlmError: it cannot be written.
        """
        _check_path(path)
        coefficients, intercept = self.linear()
        classes = self.targets.classes
        try:
            with path.open("wb") as file:
                np.savez_compressed(
                    file,
                    format=np.array(_FORMAT),
                    weights=self.weights,
                    loss=np.array(self.loss.value),
                    bits=np.array(self.bits),
                    fraction=np.array(self.fraction),
                    low=self.normaliser.low,
                    span=self.normaliser.span,
                    bias=np.array(self.normaliser.bias),
                    classes=np.array(() if classes is None else classes, np.float64),
                    target=np.array((self.targets.offset, self.targets.scale)),
                    coef_=coefficients,
                    intercept_=np.array(intercept),
                )
        except OSError as error:
            raise GlmError(f"{path}: {error.strerror}", "name a file that can be written") from None

    @classmethod
    def load(cls, path: Path) -> Model:
        """Read what `save` wrote; nothing in the file is executed.

        Raises:
            GlmError: it cannot be read, or is none of ours.
        """
        _check_path(path)
        try:
            if path.is_file() and not zipfile.is_zipfile(path):
                raise ValueError("not an .npz file")
            with np.load(path, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
            return _checked(found)
        except OSError as error:
            raise GlmError(f"{path}: {error.strerror or error}", _WANTED) from None
        except KeyError as error:
            raise GlmError(f"{path} is no model: it has no array {error}", _WANTED) from None
        except (ValueError, TypeError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise GlmError(f"{path} is no model: {error}", _WANTED) from None


def _check_path(path: Any) -> None:
    if not isinstance(path, Path):
        raise GlmError(f"a model in {path!r}", "give the Path of a file")


def _checked(found: dict[str, Any]) -> Model:
    if str(found["format"]) != _FORMAT:
        raise ValueError(f"its format is {str(found['format'])!r}, not {_FORMAT!r}")
    low, span = (np.asarray(found[name], np.float64) for name in ("low", "span"))
    weights, bits, fraction = found["weights"], int(found["bits"]), int(found["fraction"])
    bias = bool(found["bias"])
    if weights.dtype != np.int32 or weights.shape != (len(low) + bias,) or low.shape != span.shape or low.ndim != 1:
        raise ValueError("its arrays do not fit one another")
    if not np.isfinite(low).all() or not np.isfinite(span).all() or (span < 0).any():
        raise ValueError("its ranges of features are no ranges")
    if not 1 <= bits <= PLANES or not FRACTION_LEAST <= fraction <= FRACTION_MOST:
        raise ValueError(f"it has features of {bits} bits, weights of {fraction} fraction bits")
    classes, target = (np.asarray(found[name], np.float64) for name in ("classes", "target"))
    if classes.shape not in {(0,), (2,)} or target.shape != (2,) or not np.isfinite(target).all():
        raise ValueError("its classes and targets are not two numbers each")
    offset, scale = (float(value) for value in target)
    targets = Targets((float(classes[0]), float(classes[1])) if len(classes) else None, offset, scale)
    return Model(weights, Loss(str(found["loss"])), bits, fraction, Normaliser(low, span, bias), targets)
