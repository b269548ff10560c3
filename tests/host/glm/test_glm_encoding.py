"""The codes of features in C++ against the formula in numpy, for every layout; and what its binding refuses."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from catchment.host.glm.encoding import Encoded, Normaliser
from catchment.host.glm.errors import GlmError


@pytest.fixture
def draw(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.randrange(1 << 32))


def by_hand(values: Any, normaliser: Normaliser, bits: int) -> Any:
    """Docs: (value - low) / span * (2**bits - 1), cut and rounded half to even; the bias is the largest code."""
    largest = (1 << bits) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(normaliser.span > 0, (values - normaliser.low) / normaliser.span, 0.0)
    codes = np.rint(np.clip(share, 0, 1) * largest).astype(np.int64)
    return np.column_stack([codes, np.full(len(codes), largest)]) if normaliser.bias else codes


def dense(encoded: Encoded) -> Any:
    return encoded.rows.toarray() if isinstance(encoded.rows, sp.csr_array) else encoded.rows


@pytest.mark.parametrize("density", [1.0, 0.3, 0.02])
@pytest.mark.parametrize("bits", [1, 4, 8, 9, 16])
@pytest.mark.parametrize("bias", [True, False])
def test_codes_are_those_of_the_formula(draw: np.random.Generator, density: float, bits: int, bias: bool) -> None:
    """A share of the features is negative, so that zeros have codes; one never differs; new samples are beyond."""
    samples, features = int(draw.integers(1, 60)), int(draw.integers(2, 120))
    values = np.abs(draw.standard_normal((samples, features))) * 10.0 ** draw.integers(-9, 9, features)
    values *= np.where(draw.random(features) < 0.1, -1, 1) * (draw.random((samples, features)) < density)
    values[:, draw.integers(features)] = 7.0
    normaliser = Normaliser.fit(sp.csr_array(values), bias=bias)
    assert np.array_equal(normaliser.low, values.min(axis=0))
    assert np.array_equal(normaliser.low + normaliser.span, values.min(axis=0) + np.ptp(values, axis=0))
    order = draw.permutation(samples)
    encoded = normaliser.encode(sp.csr_array(values), bits, order)
    assert np.array_equal(dense(encoded), by_hand(values[order], normaliser, bits))
    assert encoded.mean_squared_length() == pytest.approx(
        np.mean((dense(encoded) * 2.0**-bits) ** 2) * encoded.shape[1]
    )
    new = values * draw.uniform(-2, 2, values.shape)
    assert np.array_equal(dense(normaliser.encode(sp.csr_array(new), bits)), by_hand(new, normaliser, bits))


@pytest.mark.parametrize(
    ("damage", "error", "says"),
    [
        ({"offsets": [0, 3]}, ValueError, "offsets"),
        ({"offsets": [0, 2, 1]}, ValueError, "offsets"),
        ({"columns": [0, 9]}, ValueError, "beyond the features"),
        ({"columns": [-1, 1]}, ValueError, "beyond the features"),
        ({"columns": [1, 0]}, ValueError, "do not rise"),
        ({"order": [1]}, IndexError, "not there"),
        ({"codes": [1]}, ValueError, "one code a stored value"),
    ],
)
def test_places_are_not_trusted(damage: dict[str, list[int]], error: type[Exception], says: str) -> None:
    from catchment.host import _glm

    given = {"offsets": [0, 2], "columns": [0, 1], "codes": [3, 4], "order": [0], "of_zero": [0, 0], **damage}
    types = {"offsets": np.int64, "columns": np.int32, "codes": np.uint16, "order": np.int64, "of_zero": np.uint16}
    arrays: Any = {name: np.array(values, types[name]) for name, values in given.items()}
    with pytest.raises(error, match=says):
        _glm.sparse_codes(**arrays, bias=1)
    if says != "do not rise":
        with pytest.raises(error, match=says):
            _glm.dense_codes(**arrays, bias=1, rows=np.zeros((1, 3), np.uint8))


@pytest.mark.parametrize("features", [2, 4])
def test_samples_have_the_features_of_the_ranges(features: int) -> None:
    normaliser = Normaliser(np.zeros(3), np.ones(3))
    with pytest.raises(GlmError, match=f"samples of {features} features.*these numbers are for 3"):
        normaliser.encode(sp.csr_array(np.ones((5, features))), 8)
