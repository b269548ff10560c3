"""Delayed scaling: what may be promised about the exponent, and what a saturated push does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.host.layers import TrainingError
from catchment.host.optimizer import DelayedScaling, ScalingOptions
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

magnitudes = st.floats(min_value=1e-30, max_value=1e30)


@given(sums=st.lists(magnitudes, min_size=1, max_size=40), workers=st.integers(1, 32), headroom=st.integers(0, 8))
def test_the_exponent_covers_the_window_with_its_headroom_and_no_more(
    sums: list[float], workers: int, headroom: int
) -> None:
    options = ScalingOptions(headroom=headroom)
    scaling = DelayedScaling("t", workers, options)
    for total in sums:
        assert scaling.observe(total, saturated=False)
    largest = max(sums[-options.history :]) / workers
    assert largest * 2**headroom < 2.0**scaling.exponent <= 2 * largest * 2**headroom * (1 + 1e-15)


@given(
    values=st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=8),
    growth=st.floats(0.0, 7.9),
    workers=st.integers(1, 8),
)
def test_a_push_within_the_headroom_never_saturates(values: list[float], growth: float, workers: int) -> None:
    scaling = DelayedScaling("t", workers, ScalingOptions(headroom=3))
    mean = max(abs(value) for value in values)
    scaling.observe(mean * workers, saturated=False)
    if mean > 1e-30:
        now = np.array([mean * growth], dtype=np.float32)
        assert formats.quantize(now, DataType.FP32, scaling.exponent, workers).saturated == 0


@given(
    history=st.lists(magnitudes, max_size=5), bad=st.sampled_from([(1.0, True), (math.inf, False), (math.nan, False)])
)
def test_a_saturated_sum_is_skipped_and_raises_the_exponent(history: list[float], bad: tuple[float, bool]) -> None:
    scaling = DelayedScaling("t", 4, ScalingOptions(backoff=5))
    for total in history:
        scaling.observe(total, saturated=False)
    before = scaling.exponent
    assert not scaling.observe(*bad)
    assert scaling.exponent == min(127, before + 5)
    assert scaling.observe(1.0, saturated=False)  # and the next good one counts again


def test_zero_gradients_keep_the_exponent() -> None:
    scaling = DelayedScaling("t", 4, ScalingOptions(initial=2))
    assert scaling.observe(0.0, saturated=False)
    assert scaling.exponent == 2
    scaling.observe(4.0, saturated=False)
    after = scaling.exponent
    assert scaling.observe(0.0, saturated=False)
    assert scaling.exponent == after


def test_after_skips_that_raised_it_far_too_much_it_comes_back() -> None:
    """Infinities raise it until ordinary gradients are rounded to nothing: then it falls to where it was."""
    scaling = DelayedScaling("t", 1, ScalingOptions(patience=100, history=1))
    scaling.observe(0.9, saturated=False)
    before = scaling.exponent
    for _ in range(15):
        scaling.observe(1.0, saturated=True)
    scaling = _again(scaling)
    assert scaling.exponent == before + 60
    steps = 0
    while scaling.exponent > before + 26:  # |g| < 1 becomes visible where 2^(E-30) is below it
        assert scaling.observe(0.0, saturated=False)
        steps += 1
    assert steps < 15
    scaling.observe(0.9, saturated=False)
    assert scaling.exponent == before


def _again(scaling: DelayedScaling) -> DelayedScaling:
    fresh = DelayedScaling("t", 1, ScalingOptions(patience=100, history=1))
    fresh.restore(scaling.notes())
    return fresh


def test_an_outlier_is_forgotten_after_the_history() -> None:
    scaling = DelayedScaling("t", 1, ScalingOptions(history=3, headroom=0))
    scaling.observe(1000.0, saturated=False)
    for _ in range(2):
        scaling.observe(0.9, saturated=False)
        assert scaling.exponent == 10
    scaling.observe(0.9, saturated=False)
    assert scaling.exponent == 0


def test_endless_saturation_names_the_tensor() -> None:
    scaling = DelayedScaling("blocks.3.qkv.weight", 4, ScalingOptions(patience=3))
    scaling.observe(1.0, saturated=True)
    scaling.observe(1.0, saturated=True)
    with pytest.raises(TrainingError, match=r"blocks\.3\.qkv\.weight saturated 3 times"):
        scaling.observe(1.0, saturated=True)


def test_exponents_stay_within_the_header_field() -> None:
    high = DelayedScaling("t", 1, ScalingOptions(initial=126))
    high.observe(1.0, saturated=True)
    assert high.exponent == 127
    low = DelayedScaling("t", 1, ScalingOptions(headroom=0))
    low.observe(1e-45, saturated=False)
    assert low.exponent == -128
    for wrong in ({"initial": 128}, {"headroom": -1}, {"history": 0}, {"backoff": 0}, {"patience": 0}):
        with pytest.raises(TrainingError):
            ScalingOptions(**wrong)
