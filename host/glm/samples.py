"""Samples as they come: a sparse matrix of floats, and a label each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from catchment.host.glm.errors import GlmError

Floats = NDArray[np.float64]
_INDEXED = tuple(getattr(sp, f"{form}_{kind}") for form in ("csr", "csc", "bsr") for kind in ("array", "matrix"))


@dataclass(frozen=True, slots=True)
class Samples:
    """Rows of features and their labels.

    Attributes:
        matrix: CSR, float64, shape (samples, features), its indices sorted and without duplicates.
        labels: float64, shape (samples,).
        labelled: False where the labels are only zeros in their place.
    """

    matrix: sp.csr_array
    labels: Floats
    labelled: bool = True

    @classmethod
    def of(cls, matrix: Any, labels: Any) -> Samples:
        """Make samples from a scipy sparse matrix, a numpy array or what scikit-learn takes as one.

        Raises:
            GlmError: not two-dimensional, not finite, no rows, or another number of labels.
        """
        rows = rows_of(matrix)
        try:
            values = np.asarray(labels, np.float64)
        except (TypeError, ValueError, OverflowError):
            raise GlmError("labels that are no numbers", "encode the classes as numbers") from None
        if values.shape != (rows.shape[0],):
            raise GlmError(f"{rows.shape[0]} samples with labels of shape {values.shape}", "give one label a sample")
        if not np.isfinite(values).all():
            raise GlmError(f"label {int(np.argmin(np.isfinite(values)))} is not finite", "remove that sample")
        return cls(rows, values)


def rows_of(matrix: Any) -> sp.csr_array:
    """Features as CSR of float64.

    Raises:
        GlmError: as for `Samples.of`.
    """
    try:
        if isinstance(matrix, _INDEXED):
            matrix.check_format(full_check=True)  # scipy's own code trusts the indices, which may come from a file
        rows = sp.csr_array(matrix, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise GlmError(
            f"features that are no matrix of numbers ({error})", "give a 2-d array or a sparse matrix"
        ) from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise GlmError(f"features of shape {rows.shape}", "give at least one sample with at least one feature")
    rows.sum_duplicates()
    rows.sort_indices()
    finite = np.isfinite(rows.data)
    if not finite.all():
        row = int(np.searchsorted(rows.indptr, int(np.argmin(finite)), side="right")) - 1
        raise GlmError(f"sample {row} has a feature that is not finite", "remove or replace it")
    return rows
