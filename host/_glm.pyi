"""Types of the GLM worker's native part (host/glm/native)."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

@final
class Worker:
    """A share of the features of all samples (or, data-parallel, all features of some), and its weights.

    Wrong shapes raise ValueError, samples beyond the last IndexError.
    """

    @staticmethod
    def dense(
        codes: npt.NDArray[np.uint8] | npt.NDArray[np.uint16],
        labels: npt.NDArray[np.int32],
        *,
        loss: str,
        forward_shift: int,
        sigmoid: npt.NDArray[np.int32],
    ) -> Worker: ...
    @staticmethod
    def sparse(
        offsets: npt.NDArray[np.int64],
        columns: npt.NDArray[np.int32],
        codes: npt.NDArray[np.uint16],
        features: int,
        labels: npt.NDArray[np.int32],
        *,
        loss: str,
        forward_shift: int,
        sigmoid: npt.NDArray[np.int32],
    ) -> Worker: ...
    def resume(self, weights: npt.NDArray[np.int32]) -> None:
        """Begin with these weights, one a feature."""

    def weigh(self, importance: npt.NDArray[np.int32]) -> None:
        """Give each sample an importance of 0 to 2**16, which is 1; until then all have 1."""

    def forward(self, first: int, activations: npt.NDArray[np.int32]) -> None:
        """Fill `activations` with the partial ones of the samples from `first` on."""

    def backward(self, first: int, activations: npt.NDArray[np.int32], multiplier: int) -> None:
        """Add the gradient of the samples from `first` on, given their full activations."""

    def update(self, first: int, last: int, shift: int) -> None:
        """Take the gradient of the samples first..last-1, all that were added, from the weights."""

    def take_gradient(self, shift: int, gradient: npt.NDArray[np.int32]) -> None:
        """Data-parallel: move the gradient, rounded to 2**shift, to `gradient`."""

    def apply(self, gradient: npt.NDArray[np.int32], shift: int) -> None:
        """Data-parallel: take a sum of gradients from the weights."""

    @property
    def weights(self) -> npt.NDArray[np.int32]:
        """A copy."""

    @property
    def saturated(self) -> int:
        """Partial activations, gradients and weights that were cut."""

def train_epoch(workers: Sequence[Worker], ends: Sequence[int], multiplier: int, shift: int) -> None:
    """One epoch of workers in this process; a mini-batch ends at each sample of `ends`."""

def feature_ranges(
    offsets: npt.NDArray[np.int64], columns: npt.NDArray[np.int32], values: npt.NDArray[np.float64], features: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The least and the largest value of every feature; what is not stored is 0."""

def value_codes(
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    low: npt.NDArray[np.float64],
    span: npt.NDArray[np.float64],
    largest: int,
) -> npt.NDArray[np.uint16]:
    """The code of each stored value: (value - low) / span * largest, cut to 0..largest, rounded half to even."""

def sparse_codes(
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    codes: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int64],
    of_zero: npt.NDArray[np.uint16],
    bias: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
    """Offsets, columns and codes that are not 0 of the samples in `order`.

    A feature that is not stored has the code `of_zero`; a last feature has the code `bias`, there is none if 0.
    """

def dense_codes(
    offsets: npt.NDArray[np.int64],
    columns: npt.NDArray[np.int32],
    codes: npt.NDArray[np.uint16],
    order: npt.NDArray[np.int64],
    of_zero: npt.NDArray[np.uint16],
    bias: int,
    rows: npt.NDArray[np.uint8] | npt.NDArray[np.uint16],
) -> None:
    """As `sparse_codes`, all features of all samples, into `rows`."""

def parse_libsvm(
    text: Any, base: int, features: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Labels, rows' offsets, columns and values; ValueError with args (line, what is wrong).

    Indices are base to base + features - 1.
    """
