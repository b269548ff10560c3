"""What a sum with negotiated exponents may lose: the bounds of docs/explanation/number-formats.md."""

from __future__ import annotations

import numpy as np
import pytest

from catchment.sim.golden import collectives
from catchment.wire.generated.constants import DataType

LANES, SLOTS = 1024, 256


@pytest.mark.parametrize("vectors", [1, collectives.GRID_VECTORS, collectives.GRID_VECTORS + 1])
@pytest.mark.parametrize("ranks", [2, 8, 32])
def test_errors_beside_the_largest_of_the_vector(ranks: int, vectors: int, seed: int) -> None:
    """Median at most 2^-22 and 99 % at most 2^-18 of the largest of its vector, whatever the exponents are."""
    numbers = np.random.default_rng((seed, ranks, vectors))
    # Vectors of all magnitudes, so that every place between two exponents of the grid comes up.
    magnitudes = 2.0 ** numbers.uniform(-20, 20, vectors).repeat(LANES)
    arrays = [(numbers.standard_normal(vectors * LANES) * magnitudes).astype(np.float32) for _ in range(ranks)]
    sums = collectives.total(arrays, DataType.FP32, lanes=LANES, slots=SLOTS)
    exact = np.sum([array.astype(np.float64) for array in arrays], axis=0)
    largest = np.abs(exact).reshape(vectors, LANES).max(axis=1).repeat(LANES)
    errors = np.abs(sums - exact) / largest
    assert np.median(errors) <= 2.0**-22
    assert np.quantile(errors, 0.99) <= 2.0**-18


@pytest.mark.parametrize("exponent", range(-128, 128))
def test_the_grid_holds_every_exponent(exponent: int) -> None:
    """It is the smallest of the grid that does."""
    (one,) = collectives.gridded([collectives.Scale(exponent, marked=False)], SLOTS)
    assert exponent <= one.exponent < exponent + collectives.GRID
    assert one.exponent == 127 or one.exponent % collectives.GRID == 0
    marked = [collectives.Scale(exponent, marked=True)]
    assert collectives.gridded(marked, SLOTS) == marked
    assert collectives.gridded(marked * 5, 4) == marked * 5
