"""What the numbers of wire/glm.toml mean for a training: limits, shifts (docs/explanation/glm-numbers.md).

What is computed with them is defined by sim/golden/glm.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from catchment.host.given_numbers import as_real, is_whole, keep_whole
from catchment.host.glm.errors import GlmError
from catchment.wire.generated.glm_numbers import (
    ACCUMULATOR_BITS,
    ACTIVATION_FRACTION,
    BANKS,
    DERIVATIVE_LIMIT,
    FRACTION_DEFAULT,
    FRACTION_LEAST,
    FRACTION_MOST,
    GRADIENT_BITS,
    MULTIPLIER_BITS,
    PLANES,
    SIGMOID,
    WEIGHT_LIMIT,
)


class Loss(StrEnum):
    """What is minimized, for activation z and label y."""

    SQUARES = "squares"
    """(z - y)**2 / 2"""
    LOGISTIC = "logistic"
    """log(1 + exp(-y z)), y = -1 or 1"""
    HINGE = "hinge"
    """max(0, 1 - y z), y = -1 or 1"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """How wide the numbers of a training are.

    Args:
        bits: planes of a feature that are read, 1 to 16.
        fraction: fraction bits of the weights, 16 to 24; a weight is an int32.
        batch: samples of a mini-batch.

    Raises:
        GlmError: out of range, or the gradient of a mini-batch would not fit its 48 bits.
    """

    bits: int
    batch: int
    fraction: int = FRACTION_DEFAULT

    def __post_init__(self) -> None:
        if not is_whole(self.bits, 1, PLANES):
            raise GlmError(f"features of {self.bits!r} bits", f"give 1 to {PLANES}")
        if not is_whole(self.fraction, FRACTION_LEAST, FRACTION_MOST):
            raise GlmError(f"weights with {self.fraction!r} fraction bits", f"give {FRACTION_LEAST} to {FRACTION_MOST}")
        if not is_whole(self.batch, BANKS) or self.batch % BANKS:
            raise GlmError(f"a mini-batch of {self.batch!r} samples", f"give a multiple of {BANKS}")
        keep_whole(self, "bits", "batch", "fraction")
        spare = GRADIENT_BITS - 1 - (DERIVATIVE_LIMIT.bit_length() + self.bits)
        if self.batch > 1 << spare:
            raise GlmError(
                f"a mini-batch of {self.batch} samples of {self.bits} bits", f"at most {1 << spare} at this precision"
            )

    @property
    def forward_shift(self) -> int:
        """A dot product of planes and weights, shifted right by this, is an activation."""
        return self.fraction + self.bits - ACTIVATION_FRACTION

    @property
    def rates(self) -> tuple[float, float]:
        """The least learning rate that there is a step for, and where they end."""
        low, high = (math.ldexp(self.batch, self._unit_shift - places) for places in (GRADIENT_BITS, 0))
        return low, high

    @property
    def _unit_shift(self) -> int:
        """What an update shifts a gradient by at a step of 1/2 or more and below 1, less the step's own exponent."""
        return ACTIVATION_FRACTION + self.bits - self.fraction

    def check_features(self, features: int) -> None:
        """Refuse a worker's share of the features whose dot product may exceed its accumulator.

        Raises:
            GlmError: it may.
        """
        most = 1 << (ACCUMULATOR_BITS - 1 - WEIGHT_LIMIT.bit_length() - self.bits)
        if features > most:
            raise GlmError(
                f"{features} features of {self.bits} bits at one worker",
                f"at most {most} at this precision: take more workers or fewer bits",
            )


@dataclass(frozen=True, slots=True)
class Step:
    """The step gamma / batch as hardware takes it: multiplier * 2**-16 * 2**-exponent.

    Attributes:
        multiplier: 2**15 to 2**16 - 1; a scale is derivative * multiplier * 2**-16, rounded.
        shift: a gradient, shifted right by this, is what a weight loses.
    """

    multiplier: int
    shift: int

    @classmethod
    def of(cls, rate: float, numbers: Numbers) -> Step:
        """The step nearest to `rate` / batch.

        Raises:
            GlmError: it is too large or too small for these numbers.
        """
        real = as_real(rate)
        if real is None or not 0 < real < math.inf:
            raise GlmError(f"a learning rate of {rate!r}", "give a positive number")
        mantissa, exponent = math.frexp(real / numbers.batch)
        multiplier = round(math.ldexp(mantissa, MULTIPLIER_BITS))
        if multiplier == 1 << MULTIPLIER_BITS:
            multiplier, exponent = multiplier >> 1, exponent + 1
        shift = numbers._unit_shift - exponent
        if not 0 <= shift < GRADIENT_BITS:
            low, high = numbers.rates
            raise GlmError(
                f"a learning rate of {rate} with mini-batches of {numbers.batch}",
                f"these numbers have steps for rates of at least {low:.3g} and below {high:.3g}",
            )
        return cls(multiplier, shift)


def sigmoid_table() -> NDArray[np.int64]:
    """The logistic function at i / 16 for i = 0..256, times 2**16, rounded; between two entries it is a line."""
    return np.array(SIGMOID, np.int64)
