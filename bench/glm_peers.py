"""Time to the same training loss: our worker, scikit-learn's SGDClassifier, LIBLINEAR."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from bench.glm_data import NamedSamples
from host.glm import GlmError, LocalRunner, Report, Training, prepare, train

EPOCHS = 8
_MOST_EPOCHS = 40
_SMALL = 10_000
"""Samples below which everything is run thrice and the best time counts."""
_OUR_RATES = (0.5, 2.0, 8.0, 32.0)
"""Times the rate that a training chooses by itself."""
_SGD_RATES = (0.01, 0.1, 1.0, 10.0)
_LIBLINEAR_C = (10.0, 1000.0)
_LIBLINEAR_ITERATIONS = (2, 4, 6, 8, 12, 16, 24, 32)


@dataclass(frozen=True, slots=True)
class Reached:
    """The shortest time to the loss; None when no setting came there."""

    seconds: float | None
    how: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everybody's time to `target`, the mean logistic loss that our worker has after EPOCHS epochs."""

    target: float
    ours: Reached
    preparation: float
    sgd: Reached
    liblinear: Reached


def compare(data: NamedSamples) -> Comparison:
    """All of them on one set, each with its best setting of a few."""
    repeats = range(3 if data.samples.matrix.shape[0] < _SMALL else 1)
    runs = [_ours(data) for _ in repeats]
    reports, preparation = runs[0][0], min(run[2] for run in runs)
    ours = min((Reached(sum(report.seconds for report in run[0]), run[1]) for run in runs), key=_seconds)
    target = reports[-1].loss
    labels = np.where(data.samples.labels == data.samples.labels.max(), 1, -1)
    forms = _forms(data)
    return Comparison(
        target,
        ours,
        preparation,
        min((_sgd(forms, labels, target) for _ in repeats), key=_seconds),
        min((_liblinear(forms, labels, target) for _ in repeats), key=_seconds),
    )


def _seconds(reached: Reached) -> float:
    return float("inf") if reached.seconds is None else reached.seconds


def _ours(data: NamedSamples) -> tuple[list[Report], str, float]:
    """One worker without a switch, at the rate that gives the lowest loss."""
    begin = time.perf_counter()
    prepared = prepare(data.samples, Training(bits=4, batch=8, epochs=EPOCHS, fraction=18))
    preparation = time.perf_counter() - begin
    assert prepared.training.rate is not None
    best: tuple[list[Report], str] | None = None
    for factor in _OUR_RATES:
        rate = factor * prepared.training.rate
        try:
            training = Training(bits=4, batch=8, epochs=EPOCHS, fraction=18, rate=rate)
        except GlmError:
            continue  # beyond the fixed-point steps
        _, reports = train(prepare(data.samples, training), LocalRunner())
        if best is None or reports[-1].loss < best[0][-1].loss:
            best = reports, f"4 bits, B=8, rate {rate:.3g}, {EPOCHS} epochs"
    assert best is not None
    return *best, preparation


def _forms(data: NamedSamples) -> dict[str, Any]:
    """Features as others may like them best."""
    raw = sp.csr_matrix(data.samples.matrix)
    if raw.nnz > 0.2 * raw.shape[0] * raw.shape[1]:
        return {"min-max": MinMaxScaler().fit_transform(raw.toarray())}
    return {"TF-IDF": raw, "max-abs": MaxAbsScaler().fit_transform(raw)}


def _loss(model: Any, matrix: Any, labels: NDArray[np.int64]) -> float:
    return float(np.mean(np.logaddexp(0.0, -labels * model.decision_function(matrix))))


def _sgd(forms: dict[str, Any], labels: NDArray[np.int64], target: float) -> Reached:
    best = Reached(None, f"not within {_MOST_EPOCHS} epochs")
    for form, matrix in forms.items():
        for schedule, rate in (("optimal", 1.0), *(("constant", rate) for rate in _SGD_RATES)):
            model = SGDClassifier(loss="log_loss", alpha=1e-7, learning_rate=schedule, eta0=rate, random_state=1)
            seconds = 0.0
            for epoch in range(1, _MOST_EPOCHS + 1):
                begin = time.perf_counter()
                model.partial_fit(matrix, labels, classes=[-1, 1])
                seconds += time.perf_counter() - begin
                if best.seconds is not None and seconds >= best.seconds:
                    break
                if _loss(model, matrix, labels) <= target:
                    best = Reached(seconds, f"{form}, {schedule} rate {rate:g}, {epoch} epochs")
                    break
    return best


def _liblinear(forms: dict[str, Any], labels: NDArray[np.int64], target: float) -> Reached:
    best = Reached(None, f"not within {_LIBLINEAR_ITERATIONS[-1]} iterations")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for form, matrix in forms.items():
            for strength in _LIBLINEAR_C:
                for iterations in _LIBLINEAR_ITERATIONS:
                    model = LogisticRegression(solver="liblinear", C=strength, tol=1e-8, max_iter=iterations)
                    begin = time.perf_counter()
                    model.fit(matrix, labels)
                    seconds = time.perf_counter() - begin
                    if best.seconds is not None and seconds >= best.seconds:
                        break
                    if _loss(model, matrix, labels) <= target:
                        best = Reached(seconds, f"{form}, C={strength:g}, {iterations} iterations")
                        break
    return best
