"""The verdict on a run beside one process: what is not finite is compared, too, and told."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from catchment.demo.compare import SingleProcess, compare
from catchment.demo.outcome import Outcome, PassLosses
from catchment.demo.summary import print_summary
from catchment.sim.training.options import TrainingOptions

NAN = math.nan
_WORKERS = 2


def _losses(*rows: tuple[float, float]) -> PassLosses:
    losses = PassLosses(_WORKERS)
    for index, row in enumerate(rows):
        for worker, loss in enumerate(row):
            losses.add(index, worker, loss, 0.1)
    return losses


def _options() -> TrainingOptions:
    return TrainingOptions(workers=_WORKERS, steps=1, evaluate=1)


@pytest.mark.parametrize(
    ("network", "one_process", "gap"),
    [
        ((2.0, 4.0), (2.0, 4.0), 0.0),
        ((2.0, 4.0), (2.0, 4.5), 0.25),
        ((2.0, NAN), (NAN, 4.0), 0.0),  # both means are NaN
        ((2.0, NAN), (2.0, 4.0), math.inf),
        ((2.0, 4.0), (2.0, NAN), math.inf),
        ((2.0, math.inf), (2.0, math.inf), 0.0),
        ((2.0, math.inf), (2.0, -math.inf), math.inf),
        ((2.0, math.inf), (2.0, NAN), math.inf),
    ],
)
def test_losses_that_are_not_finite_are_apart_unless_both_are(
    network: tuple[float, float], one_process: tuple[float, float], gap: float
) -> None:
    options = _options()
    before = [(1.0, 1.0)] * (len(options.passes) - 1)
    ours = _losses(*before, network)
    beside = SingleProcess(_losses(*before, one_process), ours, "the same", 1.0)
    comparison = compare(options, ours, "the same", beside)
    assert comparison.largest_gap == comparison.final_gap == gap
    assert comparison.holds is (gap <= comparison.tolerance)


@pytest.mark.parametrize(
    ("integers", "equal"), [((NAN, 1.0), True), ((1.0, NAN), False), ((NAN, 2.0), False), ((1.0, 1.0), False)]
)
def test_losses_of_integer_sums_are_equal_where_both_are_nan(integers: tuple[float, float], equal: bool) -> None:
    options = _options()
    before = [(1.0, 1.0)] * (len(options.passes) - 1)
    # What a process sends as JSON comes as another NaN than ours.
    ours, exact = (_losses(*before, row) for row in ((float("nan"), 1.0), integers))
    comparison = compare(options, ours, "the same", SingleProcess(ours, exact, "the same", 1.0))
    assert comparison.equal_passes == len(options.passes) - (not equal)
    assert comparison.exact is equal


def _outcome(**changes: Any) -> Outcome:
    outcome = Outcome(
        options={"steps": 1}, parameters=1, layers=1, text_bytes=1, text_files=1, losses=[[1.0, 1.0]],
        reference_losses=[[1.0, 1.0]], comparison=None, digest="0" * 64, seconds=1.0, reference_seconds=1.0,
        step_seconds=[1.0], volumes=[], worker_memory=[{"peak_parameter_bytes": 1, "model_bytes": 2}],
        endpoint_stats={}, drops={}, skipped=[], exponents={}, timeline={},
    )  # fmt: skip
    return replace(outcome, **changes)


def test_a_diverged_training_says_so_in_the_summary_and_in_json(tmp_path: Path) -> None:
    diverged = _outcome(losses=[[1.0, 1.0], [NAN, math.inf]])
    for outcome, said in ((_outcome(), False), (diverged, True)):
        screen = io.StringIO()
        print_summary(outcome, tmp_path, Console(file=screen))
        assert ("the training diverged" in screen.getvalue()) is said
    path = tmp_path / "report.json"
    diverged.write(path)
    assert json.loads(path.read_text())["losses"] == [[1.0, 1.0], [None, None]]
