"""The study of number formats, on a model of seconds: it runs to its end, and its errors are what theory says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import format_plots
from bench.format_error import EDGES, ErrorDistribution
from bench.format_training import BUCKET, EXACT, Study
from bench.formats import distances, samples
from catchment.sim.training.options import TrainingOptions

OPTIONS = TrainingOptions(steps=3, preset="tiny", batch=2, workers=3, wire="fp32", network="memory")


def test_a_distribution_is_of_what_was_added() -> None:
    found = ErrorDistribution()
    exact = np.asarray([1.0, 2.0, 4.0, 0.0, 8.0])
    found.add(np.asarray([1.0, 2.5, 0.0, 0.0, 8.0 + 8 * 2.0**-10]), exact)
    found.add(None, exact)
    assert (found.elements, found.exact, found.lost, found.skipped) == (4, 1, 1, 5)
    assert found.largest == 1.0
    assert found.quantile(0.25) == 0.0
    assert found.quantile(0.5) == pytest.approx(2.0**-10)
    above = dict(zip(EDGES, found.exceeding(), strict=True))
    assert above[2.0**-11] == 0.75 and above[2.0**-3] == 0.5 and above[2.0**1] == 0.0


def test_errors_of_the_formats_are_ordered_as_their_bits(tmp_path: Path) -> None:
    found = Study(OPTIONS).errors(samples(OPTIONS.steps))
    vector = {name: distribution.vector_error for name, distribution in found.items()}
    assert vector["fp32 block"] < vector["fp32 fixed"] < vector["fp16 block"] < vector["bf16 block"] < 2.0**-8
    assert vector["fp32 block"] < 2.0**-23 and vector[BUCKET] < 2.0**-23
    for name in ("fp32 block", BUCKET):  # what docs/explanation/number-formats.md promises
        beside = found[name].beside_largest()
        assert beside["median_beside_largest"] <= 2.0**-22 and beside["p99_beside_largest"] <= 2.0**-18
    # Thirteen bits of the largest of a vector, beside the eight of bf16; delayed scaling keeps some in reserve.
    assert vector["bf16 block"] < vector["bf16 packed block"] < vector["bf16 packed delayed"] < 2.0**-5
    assert vector["fp32 packed block"] < 2.0**-9
    for name in ("fp32", "fp16", "bf16"):  # each adds three numbers with two roundings, in another order perhaps
        assert 0.5 < vector[f"{name} gloo"] / vector[f"{name} floats"] < 2.0
    format_plots.errors(found, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 1000


def test_runs_differ_by_their_sums_alone(tmp_path: Path) -> None:
    curves = {run: Study(OPTIONS).train(run) for run in (EXACT, "fp32 block", "bf16 block")}
    apart = distances(curves)
    assert apart[EXACT]["difference_of_weights"] == 0.0
    assert 0 < apart["fp32 block"]["difference_of_weights"] < apart["bf16 block"]["difference_of_weights"] < 0.01
    format_plots.convergence(curves, tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").stat().st_size > 1000
