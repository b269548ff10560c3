"""Labels as the workers' integers: one of two classes, or a target that is mapped to -1..1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from catchment.host.given_numbers import is_real
from catchment.host.glm.errors import GlmError
from catchment.host.glm.numbers import Loss
from catchment.host.glm.samples import Floats
from catchment.wire.generated.glm_numbers import ACTIVATION_FRACTION, TARGET_LIMIT

_NAMED_CLASSES = 8


@dataclass(frozen=True, slots=True)
class Targets:
    """What an activation stands for: offset + scale * activation, or the second class when positive.

    Attributes:
        classes: (negative, positive); None for least squares.
        offset, scale: of least squares.
    """

    classes: tuple[float, float] | None = None
    offset: float = 0.0
    scale: float = 1.0

    @classmethod
    def fit(cls, loss: Loss, labels: Floats, *, positive: float | None = None) -> Targets:
        """The labels' classes, the smaller the negative one, or their range.

        Args:
            loss: decides which.
            labels: shape (samples,).
            positive: this class against all others, which become `nan`.

        Raises:
            GlmError: there are not two classes, or the labels' range is beyond what a float can say.
        """
        if loss == Loss.SQUARES:
            if positive is not None:
                raise GlmError("a positive class for least squares", "it is for logistic and hinge")
            low, high = float(labels.min()), float(labels.max())
            offset, scale = (low + high) / 2, (high - low) / 2 or 1.0
            if not (np.isfinite(offset) and np.isfinite(scale)):
                raise GlmError(f"labels of {low:g} to {high:g}, which is no range of floats", "scale them")
            return cls(None, offset, scale)
        found = np.unique(labels)
        if positive is not None:
            if not (isinstance(positive, bool | np.bool_) or is_real(positive)):
                raise GlmError(f"a positive class {positive!r}", "give the number that its labels are")
            if positive not in found or len(found) < 2:
                raise GlmError(f"class {class_name(positive)} and others are needed; there are {named(found)}")
            others = found[found != positive]
            return cls((float(others[0]) if len(others) == 1 else float("nan"), float(positive)))
        if len(found) != 2:
            counted = "1 class" if len(found) == 1 else f"{len(found)} classes"
            raise GlmError(
                f"{counted} ({named(found)}) for the loss {loss.value}, which takes two",
                "give samples of both"
                if len(found) == 1
                else "one against the others: --positive CLASS; numbers: --loss squares",
            )
        return cls((float(found[0]), float(found[1])))

    def encode(self, labels: Floats) -> NDArray[np.int32]:
        """1 or -1 by class; a target with 16 fraction bits, cut to -4..4."""
        exact = np.rint(self.exact(labels))
        return np.clip(exact, -TARGET_LIMIT, TARGET_LIMIT).astype(np.int32)

    def exact(self, labels: Floats) -> Floats:
        """What `encode` gives, neither rounded nor cut: to measure a model with."""
        if self.classes is not None:
            return np.where(labels == self.classes[1], 1.0, -1.0)
        return (labels - self.offset) / self.scale * (1 << ACTIVATION_FRACTION)

    def unknown(self, labels: Floats) -> Floats:
        """Labels that are none of the classes, in order; nothing if all others are one class, or for least squares."""
        if self.classes is None or np.isnan(self.classes[0]):
            return np.empty(0)
        return np.setdiff1d(labels, self.classes)

    def predictions(self, activations: Floats) -> Floats:
        """The class, or the target, of activations."""
        if self.classes is not None:
            return np.where(activations > 0, self.classes[1], self.classes[0])
        return self.offset + self.scale * activations


def mean_loss(loss: Loss, activations: Floats, labels: NDArray[np.int32] | Floats) -> float:
    """The mean loss, in real numbers, of activations against encoded or exact labels."""
    if loss == Loss.SQUARES:
        return float(np.mean((activations - labels / (1 << ACTIVATION_FRACTION)) ** 2) / 2)
    margins = activations * labels
    if loss == Loss.LOGISTIC:
        return float(np.mean(np.logaddexp(0.0, -margins)))
    return float(np.mean(np.maximum(0.0, 1.0 - margins)))


def score(loss: Loss, activations: Floats, labels: NDArray[np.int32] | Floats) -> float:
    """Accuracy; for least squares the coefficient of determination."""
    if loss == Loss.SQUARES:
        wanted = labels / (1 << ACTIVATION_FRACTION)
        spread = float(np.sum((wanted - wanted.mean()) ** 2))
        return 1.0 - float(np.sum((wanted - activations) ** 2)) / spread if spread else 0.0
    return float(np.mean((activations > 0) == (labels > 0)))


def score_name(loss: Loss) -> str:
    """What `score` is, for people."""
    return "R squared" if loss == Loss.SQUARES else "accuracy"


def score_key(loss: Loss) -> str:
    """What `score` is, for programs."""
    return "r2" if loss == Loss.SQUARES else "accuracy"


def named(classes: Floats) -> str:
    """The first of them, for a message."""
    shown = ", ".join(map(class_name, classes[:_NAMED_CLASSES]))
    return shown + (", ..." if len(classes) > _NAMED_CLASSES else "")


def class_name(label: float) -> str:
    """A class as people write it: no two classes have the same name."""
    return repr(float(label)).removesuffix(".0")
