"""The definition of a GLM worker's numbers: bit-serial sums are dot products, partitions do not matter, bounds hold."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from catchment.host.glm import GlmError, Loss, Numbers, Shares, Step
from catchment.sim.golden import glm
from catchment.wire.generated.glm_numbers import ACTIVATION_LIMIT, BANKS, CHUNK, DERIVATIVE_LIMIT, WEIGHT_LIMIT

ONE = 1 << 16


@pytest.fixture
def draw(rng: random.Random) -> np.random.Generator:
    return np.random.default_rng(rng.randrange(1 << 32))


def _codes(draw: np.random.Generator, samples: int, features: int) -> glm.Codes:
    return draw.integers(0, 1 << 16, (samples, features), dtype=np.uint16)


def _train(
    codes: glm.Codes, labels: glm.Ints, shares: Shares, numbers: Numbers, loss: Loss, *, rate: float, epochs: int = 1
) -> glm.Ints:
    workers = glm.workers_of(codes, shares, numbers, loss)
    for _ in range(epochs):
        glm.train_epoch(workers, labels, Step.of(rate, numbers))
    return glm.model_of(workers, shares)


def test_a_word_holds_one_plane_of_a_chunk_for_every_bank(draw: np.random.Generator) -> None:
    codes = _codes(draw, 11, 2 * CHUNK + 5)
    words = glm.weave(codes, Shares(2 * CHUNK + 5, engines=2))
    assert words.shape == (2, 2, 2, 16, 8)
    # Sample 9 is bank 1 of micro-batch 1; feature 129 is lane 1 of chunk 2: slot 1 of engine 0.
    read = [(int(words[0, 1, 1, plane, 1]) >> 1) & 1 for plane in range(16)]
    assert sum(bit << (15 - plane) for plane, bit in enumerate(read)) == codes[9, 129]
    assert not words[1, :, 1].any() and not words[:, 1, :, :, 3:].any()


@pytest.mark.parametrize("bits", [1, 4, 16])
def test_bit_serial_sums_are_products_of_the_leading_bits(draw: np.random.Generator, bits: int) -> None:
    codes = _codes(draw, BANKS, CHUNK)
    planes = glm.weave(codes, Shares(CHUNK))[0, 0, 0, :bits]
    leading = (codes >> (16 - bits)).astype(np.int64)
    weights = draw.integers(-WEIGHT_LIMIT, WEIGHT_LIMIT, CHUNK)
    scales = draw.integers(-DERIVATIVE_LIMIT, DERIVATIVE_LIMIT, BANKS)
    assert np.array_equal(glm.forward_chunk(planes, weights), leading @ weights)
    assert np.array_equal(glm.backward_chunk(planes, scales), scales @ leading)


@pytest.mark.parametrize("loss", list(Loss))
def test_a_training_is_algorithm_1(draw: np.random.Generator, loss: Loss) -> None:
    """One mini-batch of two micro-batches, written out in Python's integers."""
    numbers, shares = Numbers(bits=5, batch=16), Shares(150, workers=2, engines=2)
    step = Step.of(2.0, numbers)
    codes = _codes(draw, 13, 150)
    labels = draw.choice([-1, 1], 13) * (ONE // 3 if loss == Loss.SQUARES else 1)
    workers = glm.workers_of(codes, shares, numbers, loss)
    start = draw.integers(-(1 << 15), 1 << 15, 150)
    for wid, worker in enumerate(workers):
        for feature in shares.of_worker(wid):
            chunk, lane = divmod(feature - shares.of_worker(wid).start, CHUNK)
            worker.weights[chunk % 2, chunk // 2 * CHUNK + lane] = start[feature]
    glm.train_epoch(workers, labels, step)

    leading = [[int(code) >> 11 for code in row] for row in codes]
    expected = [int(weight) for weight in start]
    gradient = [0] * 150
    for row, label in zip(leading, labels, strict=True):
        activation = sum(
            _rhe(sum(row[j] * int(start[j]) for j in shares.of_worker(wid)), numbers.forward_shift) for wid in (0, 1)
        )
        scale = _rhe(int(glm.derivatives(loss, np.array([activation]), np.array([label]))[0]) * step.multiplier, 16)
        gradient = [total + scale * f for total, f in zip(gradient, row, strict=True)]
    expected = [weight - _rhe(total, step.shift) for weight, total in zip(expected, gradient, strict=True)]
    assert glm.model_of(workers, shares).tolist() == expected and expected != start.tolist()


def _rhe(value: int, shift: int) -> int:
    from fractions import Fraction

    return round(Fraction(value, 1 << shift))


@pytest.mark.parametrize("engines", [1, 3, 8])
def test_engines_change_nothing(draw: np.random.Generator, engines: int) -> None:
    codes, labels = _codes(draw, 40, 700), draw.choice([-1, 1], 40)
    numbers = Numbers(bits=3, batch=16)
    one = _train(codes, labels, Shares(700, 2, 1), numbers, Loss.LOGISTIC, rate=1.0)
    assert np.array_equal(one, _train(codes, labels, Shares(700, 2, engines), numbers, Loss.LOGISTIC, rate=1.0))


def test_only_the_planes_that_are_read_count(draw: np.random.Generator) -> None:
    codes, labels = _codes(draw, 24, 70), draw.choice([-1, 1], 24)
    numbers = Numbers(bits=6, batch=8)
    models = [
        _train(these, labels, Shares(70), numbers, Loss.HINGE, rate=0.5)
        for these in (codes, codes & np.uint16(0xFC00), codes | np.uint16(0x03FF))
    ]
    assert np.array_equal(models[0], models[1]) and np.array_equal(models[0], models[2])


@pytest.mark.parametrize("loss", list(Loss))
def test_training_lowers_the_loss(draw: np.random.Generator, loss: Loss) -> None:
    codes = _codes(draw, 200, 20)
    codes[:, -1] = 0xFFFF
    labels = draw.choice([-1, 1], 200)
    codes[:, :4] = np.where(labels > 0, 0xE000, 0x2000)[:, None]  # four features that know
    numbers = Numbers(bits=8, batch=8)
    given = labels * (ONE if loss == Loss.SQUARES else 1)
    model = _train(codes, given, Shares(20), numbers, loss, rate=0.1, epochs=12)
    activations = (codes >> 8) / 256 @ (model / 2**numbers.fraction)
    assert np.mean(np.sign(activations) == labels) > 0.95


def test_the_sigmoid_is_near_monotone_and_odd() -> None:
    points = np.arange(-18 * ONE, 18 * ONE + 1, 37)
    values = glm.sigmoid(points)
    assert np.max(np.abs(values / ONE - 1 / (1 + np.exp(-points / ONE)))) < 6e-5
    assert np.all(np.diff(values) >= 0) and values[0] == 0 and values[-1] == ONE
    assert np.array_equal(values + glm.sigmoid(-points), np.full(len(points), ONE))


def test_what_does_not_fit_is_cut_and_counted() -> None:
    numbers, shares = Numbers(bits=16, batch=8), Shares(CHUNK)
    worker = glm.workers_of(np.full((8, CHUNK), 0xFFFF, np.uint16), shares, numbers, Loss.SQUARES)[0]
    worker.weights[:] = WEIGHT_LIMIT
    assert worker.forward(0).tolist() == [ACTIVATION_LIMIT] * 8 and worker.saturated == 8
    step = Step.of(1.0, numbers)
    worker.backward(0, np.full(8, -(1 << 31)), np.zeros(8, np.int64), step)
    worker.update(step)
    assert np.all(worker.weights == WEIGHT_LIMIT) and worker.saturated == 8 + CHUNK


def test_halves_go_to_the_even_neighbour() -> None:
    values = np.arange(-9, 10)
    assert glm.round_half_even(values, 1).tolist() == [round(v / 2) for v in values.tolist()]
    assert glm.round_half_even(values, 2).tolist() == [round(v / 4) for v in values.tolist()]
    assert glm.round_half_even(values, 0).tolist() == values.tolist()


@pytest.mark.parametrize(("bits", "fraction"), [(1, 20), (4, 20), (16, 24)])
def test_a_step_is_within_its_rounding(draw: np.random.Generator, bits: int, fraction: int) -> None:
    numbers = Numbers(bits=bits, batch=64, fraction=fraction)
    highest = 64 * 2.0 ** (16 + bits - fraction)
    for rate in (highest * 0.99999, *np.exp(draw.uniform(math.log(1e-7), math.log(highest * 0.99), 50))):
        step = Step.of(rate, numbers)
        assert 1 << 15 <= step.multiplier < 1 << 16 and 0 <= step.shift < 48
        # What a sample with derivative 1 takes from the weight of a feature whose code is 1.
        taken = step.multiplier / 2.0**step.shift
        assert taken == pytest.approx(rate / 64 * 2.0 ** (fraction - bits), rel=2.0**-15)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Numbers(bits=17, batch=8), "features of 17 bits: give 1 to 16"),
        (lambda: Numbers(bits=0, batch=8), "features of 0 bits"),
        (lambda: Numbers(bits=4, batch=12), "a mini-batch of 12 samples: give a multiple of 8"),
        (lambda: Numbers(bits=4, batch=8, fraction=25), "25 fraction bits"),
        (lambda: Numbers(bits=16, batch=8192), "at most 4096 at this precision"),
        (lambda: Numbers(bits=16, batch=8).check_features(32769), "at most 32768 at this precision"),
        (lambda: Step.of(0.0, Numbers(bits=4, batch=8)), "give a positive number"),
        (lambda: Step.of(8.0, Numbers(bits=4, batch=8)), "at least 2.84e-14 and below 8"),
        (lambda: Step.of(2.8e-14, Numbers(bits=4, batch=8)), "at least 2.84e-14"),
        (lambda: Shares(0), "0 features"),
        (lambda: Shares(1, workers=33), "33 workers"),
        (lambda: Shares(1, engines=9), "9 engines"),
    ],
)
def test_numbers_that_cannot_be_are_refused(make: object, says: str) -> None:
    assert callable(make)
    with pytest.raises(GlmError, match=says.replace("+", r"\+")):
        make()


def test_the_largest_mini_batch_fits_its_gradient() -> None:
    """All codes and scales at their largest: the sum of 4096 samples stays within 48 bits."""
    assert 4096 * 0xFFFF * DERIVATIVE_LIMIT < 1 << 47
    assert 32768 * 0xFFFF * WEIGHT_LIMIT < 1 << 62
    assert 32 * ACTIVATION_LIMIT < 1 << 31


@pytest.mark.parametrize(
    ("features", "workers", "engines"), [(5000, 8, 8), (47236, 8, 8), (30, 8, 2), (1_000_000, 4, 8)]
)
def test_shares_cover_all_features_once(features: int, workers: int, engines: int) -> None:
    shares = Shares(features, workers, engines)
    parts = [shares.of_worker(wid) for wid in range(workers)]
    assert [j for part in parts for j in part] == list(range(features))
    assert shares.engine_chunks == -(-features // (CHUNK * workers * engines))
