"""Figure 14: loss against epochs at 4 bits, beside the same mini-batch SGD in floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure

from bench import plots
from bench.glm_data import NamedSamples
from catchment.host.glm import LocalRunner, Prepared, Training, prepare, train
from catchment.wire.generated.glm_numbers import WORKERS_MAX

BITS = (2, 4, 8)
EPOCHS = 20
_RATE = 8.0
"""Times the rate that a training chooses by itself, for sparse sets; dense ones take that itself."""

Curves = Mapping[str, Sequence[float]]


def curves(data: NamedSamples, epochs: int = EPOCHS) -> Curves:
    """The mean logistic loss after each epoch, from the start: at each precision, and in floats."""
    found: dict[str, Sequence[float]] = {"float": _floats(data, epochs)}
    for bits in BITS:
        # Fewer fraction bits of a weight: steps of up to 16 a sample.
        training = Training(bits=bits, epochs=epochs, fraction=18)
        training = replace(training, rate=_rate(prepare(data.samples, training)))
        _, reports = train(prepare(data.samples, training), LocalRunner())
        found[f"{bits} bits"] = [report.loss for report in reports]
    return found


def _rate(prepared: Prepared) -> float:
    """A bound from the lengths of the samples as they are quantized: the largest code of few bits is well below 1."""
    assert prepared.training.rate is not None
    return prepared.training.rate * (_RATE if sp.issparse(prepared.encoded.rows) else 1.0)


def _floats(data: NamedSamples, epochs: int) -> list[float]:
    """Algorithm 1 in fp64 on the same normalised features in the same order, not quantized."""
    training = Training(bits=16, workers=WORKERS_MAX, epochs=1)  # so many for their accumulators alone
    prepared = prepare(data.samples, training)
    rate = _rate(prepared)
    rows = sp.csr_array(prepared.encoded.rows, dtype=np.float64) * 2.0**-16
    labels = prepared.labels.astype(np.float64)
    weights = np.zeros(rows.shape[1])
    losses = [float(np.log(2.0))]
    batches = [
        (part, part.T.tocsr(), labels[begin : begin + training.batch])
        for begin in range(0, len(labels), training.batch)
        for part in (rows[begin : begin + training.batch],)
    ]
    for _ in range(epochs):
        for part, transposed, wanted in batches:
            with np.errstate(over="ignore"):
                slopes = -wanted / (1 + np.exp(wanted * (part @ weights)))
            gradient = transposed @ (slopes * (rate / training.batch))
            weights -= gradient
        losses.append(float(np.mean(np.logaddexp(0.0, -labels * (rows @ weights)))))
    return losses


def epochs_to(curve: Sequence[float], loss: float) -> float:
    """Epochs until a curve is at `loss`, between two of them by a line; infinite if never."""
    for epoch in range(1, len(curve)):
        if curve[epoch] <= loss:
            before = curve[epoch - 1]
            return epoch - 1 + (before - loss) / (before - curve[epoch])
    return float("inf")


def plot(all_curves: Mapping[str, Curves], path: Path) -> None:
    """All sets beside one another."""
    figure = Figure(figsize=(4.2 * len(all_curves), 3.4))
    for axis, (name, found) in zip(
        figure.subplots(1, len(all_curves), squeeze=False)[0], all_curves.items(), strict=True
    ):
        for label, losses in found.items():
            style = {"color": "black", "lw": 2.5, "alpha": 0.4} if label == "float" else {"lw": 1.2}
            axis.plot(losses, label=label, **style)
        axis.set(title=f"{name}, B=64", xlabel="epoch", ylabel="mean logistic loss", yscale="log")
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    plots.save(figure, path)
