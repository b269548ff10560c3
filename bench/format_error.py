"""Distributions of the relative error of a sum, element by element."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

LOWEST, HIGHEST, PER_OCTAVE = -40, 4, 4
EDGES = 2.0 ** np.arange(LOWEST, HIGHEST + 1 / PER_OCTAVE, 1 / PER_OCTAVE)


VECTOR = 1024


def _beside_largest(got: Reals, exact: Reals) -> Reals:
    starts = np.arange(0, len(exact), VECTOR)
    largest = np.maximum.reduceat(np.abs(exact), starts).repeat(VECTOR)[: len(exact)]
    errors: Reals = np.divide(np.abs(got - exact), largest, out=np.zeros(len(exact)), where=largest > 0)
    return errors


@dataclass(slots=True)
class ErrorDistribution:
    """Collects |got - exact| / |exact| over elements whose exact sum is not zero.

    Attributes:
        counts: elements by error, in the bins of EDGES and one below and above.
        exact: elements without error. lost: elements that became zero. skipped: elements whose sum was not used.
        squared_error, squared: of all elements, for the error of the gradient as a vector.
        beside: |got - exact| over the largest |exact| of the element's vector of 1024, of every element.
    """

    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(EDGES) + 1, np.int64))
    exact: int = 0
    lost: int = 0
    skipped: int = 0
    largest: float = 0.0
    squared_error: float = 0.0
    squared: float = 0.0
    beside: list[Reals] = field(default_factory=list)

    def add(self, got: Reals | None, exact: Reals) -> None:
        """Take in a tensor's sum; None if it was left alone."""
        if got is None:
            self.skipped += len(exact)
            return
        self.squared_error += float(np.sum((got - exact) ** 2))
        self.squared += float(np.sum(exact**2))
        self.beside.append(_beside_largest(got, exact))
        there = exact != 0
        error = np.abs(got[there] - exact[there]) / np.abs(exact[there])
        self.exact += int(np.count_nonzero(error == 0))
        self.lost += int(np.count_nonzero(got[there] == 0))
        self.counts += np.bincount(np.searchsorted(EDGES, error[error > 0]), minlength=len(EDGES) + 1)
        self.largest = max(self.largest, float(error.max(initial=0.0)))

    @property
    def elements(self) -> int:
        """How many elements were compared."""
        return self.exact + int(self.counts.sum())

    @property
    def vector_error(self) -> float:
        """Norm of the error over the norm of the sum."""
        return float(np.sqrt(self.squared_error / self.squared)) if self.squared else 0.0

    def exceeding(self) -> Reals:
        """Share of elements whose error is above each of EDGES."""
        above = np.cumsum(self.counts[::-1])[::-1][1:]
        return np.asarray(above / max(1, self.elements), np.float64)

    def quantile(self, share: float) -> float:
        """The error that a share of the elements stays within, to a quarter of an octave."""
        below = self.exact + np.cumsum(self.counts)
        index = int(np.searchsorted(below, share * self.elements))
        if self.exact >= share * self.elements:
            return 0.0
        return float(EDGES[index]) if index < len(EDGES) else self.largest

    def beside_largest(self) -> dict[str, float]:
        """Quantiles of the error beside the largest of the element's vector."""
        errors = np.concatenate([*self.beside, np.zeros(1)])
        return {
            "median_beside_largest": float(np.median(errors)),
            "p99_beside_largest": float(np.quantile(errors, 0.99)),
        }

    def to_json(self) -> dict[str, float | int]:
        """Plain values."""
        return {
            "elements": self.elements,
            "median": self.quantile(0.5),
            "p99": self.quantile(0.99),
            "p99.9": self.quantile(0.999),
            **self.beside_largest(),
            "largest": self.largest,
            "vector_error": self.vector_error,
            "share_exact": self.exact / max(1, self.elements),
            "share_lost": self.lost / max(1, self.elements),
            "skipped": self.skipped,
        }
