"""numpy = HLS = RTL for P4SGD's worker; the kernels round and cut by ap_fixed, another way to the same bits."""

from __future__ import annotations

import random

import glm_hls
import numpy as np
import pytest
from glm_case import Case, assert_equal

from catchment.host.glm.numbers import Loss, Step
from catchment.sim.cosim.glm.training import LOSS_CODES
from catchment.sim.golden import glm
from catchment.wire.generated.glm_numbers import ACCUMULATOR_BITS, BANKS

pytestmark = pytest.mark.sampled(4)  # what it builds takes a minute


@pytest.mark.parametrize("loss", list(Loss))
def test_a_training_three_ways(loss: Loss, rng: random.Random) -> None:
    case = Case(rng, bits=rng.randrange(1, 17), loss=loss, workers=2, features=200, samples=44)
    models = [
        glm_hls.HlsWorker(worker.words, start, case.numbers, loss)
        for worker, start in zip(case.golden, case.start, strict=True)
    ]
    glm_hls.train(models, case.rows, case.numbers.batch // BANKS, case.step)
    in_hls = [model.weights for model in models]
    for model in models:
        model.close()
    in_rtl, _, _ = case.in_hardware()
    assert_equal(case, in_rtl)
    assert all(np.array_equal(a, b) for a, b in zip(in_hls, in_rtl, strict=True))


@pytest.mark.parametrize("loss", list(Loss))
def test_scales(loss: Loss, rng: random.Random) -> None:
    ends = [0, 1, -1, 65535, 65536, -65536, -65537, 4095, 4096, 1048575, 1048576, -1048577, 2**31 - 1, -(2**31)]
    classes = [-1, 0, 1]
    others = [rng.randrange(-(1 << (n := rng.randrange(1, 31))), 1 << n) for _ in range(3000)]
    activations = np.array([end for end in ends for _ in classes] + others)
    labels = np.array(classes * len(ends) + [rng.choice(classes) for _ in others])
    if loss == Loss.SQUARES:
        labels = np.array([rng.randrange(-(1 << 18), 1 << 18) for _ in activations])
    step = Step(rng.randrange(1 << 15, 1 << 16), 0)
    expected = glm.scales_of(glm.derivatives(loss, activations, labels), step)
    found = [
        glm_hls.scale(int(z), int(y), LOSS_CODES[loss], step.multiplier)
        for z, y in zip(activations, labels, strict=True)
    ]
    assert found == expected.tolist()


def test_activations(rng: random.Random) -> None:
    for _ in range(3000):
        shift, size = rng.randrange(1, 25), rng.randrange(1, ACCUMULATOR_BITS - 1)
        total = rng.randrange(-(1 << size), 1 << size) & ~(rng.getrandbits(1) * ((1 << shift - 1) - 1))
        exact = glm.round_half_even(np.array([total]), shift)
        assert glm_hls.activation(total, shift) == int(glm.saturate(exact, glm.ACTIVATION_LIMIT)[0])
