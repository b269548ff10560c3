"""Features as the workers' integers: every feature's range is mapped to the codes of a precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from catchment.host.glm.errors import GlmError
from catchment.host.glm.samples import Floats
from catchment.wire.generated.glm_numbers import PLANES

_DENSE_FROM = 0.2
"""Share of non-zero codes from which rows are held whole: a sparse code costs six bytes and a gather."""
_BLOCK_ROWS = 512
_BYTE = 8

Codes = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Samples as integers of `bits` bits, a bias feature included where there is one.

    Attributes:
        rows: shape (samples, features): CSR of uint16, or an array of uint8 (to 8 bits) or uint16.
        bits: of a code; a code c stands for c / 2**bits.
    """

    rows: sp.csr_array | NDArray[np.uint8] | Codes
    bits: int

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.rows.shape[0], self.rows.shape[1]

    @property
    def density(self) -> float:
        """Share of codes that are not 0."""
        stored = self.rows.nnz if isinstance(self.rows, sp.csr_array) else np.count_nonzero(self.rows)
        return float(stored / max(1, self.shape[0] * self.shape[1]))

    def columns(self, part: range) -> Encoded:
        """A worker's share of the features."""
        return Encoded(self.rows[:, part.start : part.stop], self.bits)

    def samples(self, chosen: NDArray[np.int64]) -> Encoded:
        """These samples, in this order."""
        return Encoded(self.rows[chosen], self.bits)

    def planes(self) -> Codes:
        """All codes as 16-bit features, most significant bit first: what `weave` takes. Dense; mind the size."""
        rows = self.rows.toarray() if isinstance(self.rows, sp.csr_array) else self.rows
        return np.asarray(rows, np.uint16) << np.uint16(PLANES - self.bits)

    def activations(self, weights: Floats) -> Floats:
        """The exact dot products with real weights, shape (samples,)."""
        unit = 2.0**-self.bits
        if isinstance(self.rows, sp.csr_array):
            return np.asarray(self.rows.astype(np.float64) @ weights) * unit
        blocks = (self.rows[begin : begin + _BLOCK_ROWS] for begin in range(0, self.shape[0], _BLOCK_ROWS))
        return np.asarray(np.concatenate([block.astype(np.float64) @ weights for block in blocks]) * unit)

    def mean_squared_length(self, weights: Floats | None = None) -> float:
        """The mean over the samples of their squared length, times their `weights` if there are any."""
        codes = self.rows.data if isinstance(self.rows, sp.csr_array) else self.rows.ravel()
        if weights is None:
            total = np.einsum("i,i->", codes, codes, dtype=np.float64)
        else:
            counts = np.diff(self.rows.indptr) if isinstance(self.rows, sp.csr_array) else self.shape[1]
            total = np.einsum("i,i,i->", np.repeat(weights, counts), codes, codes, dtype=np.float64)
        return float(total * 4.0**-self.bits / self.shape[0])


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Maps each feature's range linearly to codes: low to 0, low + span to the largest.

    A feature that never differs (span 0) is always 0. Values beyond the range, which only new samples have, are cut.

    Attributes:
        low, span: float64, shape (features,).
        bias: a last feature is added that is always the largest code.
    """

    low: Floats
    span: Floats
    bias: bool = True

    @classmethod
    def fit(cls, matrix: sp.csr_array, *, bias: bool = True) -> Normaliser:
        """The ranges of the features of `matrix`, the zeros that it does not store included.

        Raises:
            GlmError: a range is beyond what a float can say.
        """
        from catchment.host import _glm  # noqa: PLC0415  the error for a missing build belongs to the first use

        offsets, columns = _places(matrix)
        low, high = _glm.feature_ranges(offsets, columns, matrix.data, matrix.shape[1])
        with np.errstate(over="ignore"):
            span = high - low
        if not np.isfinite(span).all():
            worst = int(np.argmin(np.isfinite(span)))
            raise GlmError(
                f"feature {worst} (the first is 0) is {low[worst]:g} to {high[worst]:g}, which is no range of floats",
                "scale it",
            )
        return cls(low, span, bias)

    @property
    def features(self) -> int:
        """The number of features of a sample, the bias not counted."""
        return len(self.low)

    def encode(self, matrix: sp.csr_array, bits: int, order: NDArray[np.int64] | None = None) -> Encoded:
        """Codes of `bits` bits: (value - low) / span * (2**bits - 1), rounded half to even.

        Args:
            matrix: shape (samples, features), its indices sorted and without duplicates.
            bits: 1 to 16.
            order: which sample each row is of; None: all as they are.

        Raises:
            GlmError: another number of features.
        """
        from catchment.host import _glm  # noqa: PLC0415

        samples, features = matrix.shape
        if features != self.features:
            raise GlmError(f"samples of {features} features", f"these numbers are for {self.features}")
        largest = (1 << bits) - 1
        offsets, columns = _places(matrix)
        codes = _glm.value_codes(offsets, columns, matrix.data, self.low, self.span, largest)
        every = np.arange(features, dtype=np.int32)
        ends = np.array([0, features], np.int64)
        of_zero = _glm.value_codes(ends, every, np.zeros(features), self.low, self.span, largest)
        order = np.arange(samples) if order is None else order
        bias = largest if self.bias else 0
        filled = np.count_nonzero(of_zero) * samples + np.count_nonzero(codes) + samples
        if filled >= _DENSE_FROM * samples * (features + 1):
            rows = np.empty((len(order), features + self.bias), np.uint8 if bits <= _BYTE else np.uint16)
            _glm.dense_codes(offsets, columns, codes, order, of_zero, bias, rows)
            return Encoded(rows, bits)
        places, indices, data = _glm.sparse_codes(offsets, columns, codes, order, of_zero, bias)
        return Encoded(sp.csr_array((data, indices, places), shape=(len(order), features + self.bias)), bits)


def _places(matrix: sp.csr_array) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The offsets and columns of its values, as C++ takes them."""
    return matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
