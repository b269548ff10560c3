"""Features as the workers' integers: every feature's range is mapped to the codes of a precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from host.glm.errors import GlmError
from host.glm.numbers import PLANES
from host.glm.samples import Floats

_DENSE_FROM = 0.2
"""Share of non-zero codes from which rows are held whole: a sparse code costs six bytes and a gather."""
_BLOCK_ROWS = 512

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

    def squared_norms(self) -> Floats:
        """The squared length of every sample."""
        unit = 4.0**-self.bits
        if isinstance(self.rows, sp.csr_array):
            squares = self.rows.astype(np.float64).power(2)
            return np.asarray(squares.sum(axis=1)).ravel() * unit
        return np.asarray(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64) * unit)


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
        """The ranges of the features of `matrix`, the zeros that it does not store included."""
        low = np.asarray(matrix.min(axis=0).todense(), np.float64).ravel()
        high = np.asarray(matrix.max(axis=0).todense(), np.float64).ravel()
        return cls(low, high - low, bias)

    @property
    def features(self) -> int:
        """Of a sample, the bias not counted."""
        return len(self.low)

    def encode(self, matrix: sp.csr_array, bits: int) -> Encoded:
        """Codes of `bits` bits: (value - low) / span * (2**bits - 1), rounded half to even.

        Raises:
            GlmError: another number of features.
        """
        samples, features = matrix.shape
        if features != self.features:
            raise GlmError(f"samples of {features} features", f"these numbers are for {self.features}")
        codes = self._codes(matrix.data, matrix.indices, bits)
        of_zero = self._codes(np.zeros(features), np.arange(features), bits)
        full = np.flatnonzero(of_zero)
        filled = (len(full) * samples + np.count_nonzero(codes) + samples) / (samples * (features + 1))
        if filled >= _DENSE_FROM:
            return Encoded(self._dense(matrix, codes, of_zero, bits), bits)
        return Encoded(self._sparse(matrix, codes, of_zero, full, bits), bits)

    def _codes(self, values: Floats, columns: NDArray[np.int32] | NDArray[np.int64], bits: int) -> Codes:
        largest = (1 << bits) - 1
        span = self.span[columns]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            share = np.where(span > 0, (values - self.low[columns]) / span, 0.0)
        return np.asarray(np.rint(np.clip(share, 0.0, 1.0) * largest), np.uint16)

    def _dense(self, matrix: sp.csr_array, codes: Codes, of_zero: Codes, bits: int) -> NDArray[np.uint8] | Codes:
        samples, features = matrix.shape
        dtype = np.uint8 if bits <= 8 else np.uint16
        rows = np.empty((samples, features + self.bias), dtype)
        rows[:, :features] = of_zero
        rows[np.repeat(np.arange(samples), np.diff(matrix.indptr)), matrix.indices] = codes
        if self.bias:
            rows[:, features] = (1 << bits) - 1
        return rows

    def _sparse(
        self, matrix: sp.csr_array, codes: Codes, of_zero: Codes, full: NDArray[np.int64], bits: int
    ) -> sp.csr_array:
        samples, features = matrix.shape
        rows = sp.csr_array((codes, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
        if len(full):
            # Columns whose zeros have a code are held whole.
            whole = np.broadcast_to(of_zero[full], (samples, len(full))).copy()
            place = np.full(features, -1)
            place[full] = np.arange(len(full))
            inside = place[matrix.indices] >= 0
            where = np.repeat(np.arange(samples), np.diff(matrix.indptr))[inside]
            whole[where, place[matrix.indices[inside]]] = codes[inside]
            rows.data[inside] = 0
            rows.eliminate_zeros()
            spread = sp.coo_array(whole)
            rows = rows + sp.csr_array((spread.data, (spread.row, full[spread.col])), shape=matrix.shape)
        rows.eliminate_zeros()
        if self.bias:
            constant = sp.csr_array(np.full((samples, 1), (1 << bits) - 1, np.uint16))
            rows = sp.hstack([rows, constant], format="csr")
        rows.sort_indices()
        return sp.csr_array(rows, dtype=np.uint16)
