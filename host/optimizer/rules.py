"""The optimizers: their constants, and what one step of a tensor needs of them.

One step, in fp32, every operation rounded by itself (no fused multiply-add), constants computed in double before:

    Adam, AdamW                                     SGD
    g = sum * scale                                 g = sum * scale + decay * w
    m = m + (1 - beta1) * (g - m)                   m = m * momentum + g
    v = v * beta2 + ((1 - beta2) * g) * g           d = m, or with Nesterov m * momentum + g
    d = sqrt(v) * (1 / sqrt(1 - beta2^t)) + eps     w = w - lr * d
    w = w * (1 - lr * decay) - (lr / (1 - beta1^t) * m) / d

`scale` is clip / (workers * loss scale). sim/golden/optimizers.py says the same in numpy, and both agree bit for bit;
from torch's they differ by what docs/explanation/optimizer-update.md says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from catchment.host.given_numbers import is_real
from catchment.host.layers import TrainingError
from catchment.host.optimizer.store import Rule


class UpdateRule(Protocol):
    """What the node asks of an optimizer."""

    @property
    def kind(self) -> Rule:
        """Which moments it keeps."""

    @property
    def lr(self) -> float:
        """The learning rate before any schedule."""

    def scalars(self, step: int, lr: float, scale: float) -> tuple[float, ...]:
        """The constants of a tensor's step number `step` (from 1), in the order of the kernel (native/rules.hpp)."""


@dataclass(frozen=True, slots=True)
class Adam:
    """Adam (Kingma and Ba); `decay` is AdamW's decoupled weight decay."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    decay: float = 0.0
    kind: ClassVar[Rule] = Rule.ADAM

    def __post_init__(self) -> None:
        _check_reals(self, self.lr, self.beta1, self.beta2, self.eps, self.decay)
        if not (self.lr >= 0 and 0 <= self.beta1 < 1 and 0 <= self.beta2 < 1 and self.eps > 0 and self.decay >= 0):
            raise TrainingError(f"{self}: need lr >= 0, 0 <= beta < 1, eps > 0, decay >= 0")

    def scalars(self, step: int, lr: float, scale: float) -> tuple[float, ...]:
        """See UpdateRule."""
        return (
            scale,
            1 - lr * self.decay,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,
            1 / math.sqrt(1 - self.beta2**step),
            self.eps,
            lr / (1 - self.beta1**step),
        )


@dataclass(frozen=True, slots=True)
class Sgd:
    """Stochastic gradient descent; `decay` is added to the gradient (L2), as torch.optim.SGD does."""

    lr: float = 1e-2
    momentum: float = 0.9
    decay: float = 0.0
    nesterov: bool = False
    kind: ClassVar[Rule] = Rule.SGD

    def __post_init__(self) -> None:
        _check_reals(self, self.lr, self.momentum, self.decay)
        if not (self.lr >= 0 and 0 <= self.momentum < 1 and self.decay >= 0):
            raise TrainingError(f"{self}: need lr >= 0, 0 <= momentum < 1, decay >= 0")
        if not isinstance(self.nesterov, bool):
            raise TrainingError(f"{self}: nesterov is True or False")
        if self.nesterov and not self.momentum:
            raise TrainingError(f"{self}: Nesterov's direction needs a momentum")

    def scalars(self, step: int, lr: float, scale: float) -> tuple[float, ...]:
        """See UpdateRule."""
        return (scale, self.decay, self.momentum, lr, float(self.nesterov))


def _check_reals(rule: object, *constants: Any) -> None:
    if not all(map(is_real, constants)):
        raise TrainingError(f"{rule}: need finite numbers")
