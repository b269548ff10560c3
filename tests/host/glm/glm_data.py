"""Samples for the tests: random, sparse or dense, with features of every sign and range."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from catchment.host.glm import Loss, Samples


def random_samples(
    draw: np.random.Generator, samples: int, features: int, *, density: float = 1.0, loss: Loss = Loss.LOGISTIC
) -> Samples:
    """Samples whose labels depend on the features."""
    values = draw.standard_normal((samples, features)) * 10.0 ** draw.integers(-3, 4, features)
    if density < 1.0:
        values = np.abs(values) * (draw.random((samples, features)) < density)
    truth = (values / np.maximum(np.abs(values).max(axis=0), 1e-12)) @ draw.standard_normal(features)
    truth += 0.1 * draw.standard_normal(samples)
    labels = truth * 30 + 100 if loss == Loss.SQUARES else np.where(truth > np.median(truth), 5.0, 2.0)
    return Samples.of(sp.csr_array(values) if density < 1.0 else values, labels)
