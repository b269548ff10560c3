"""`glm train --worker rtl`: the model of the hardware is the model of the software, bit for bit."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from catchment.host.glm import GlmError, LocalRunner, Loss, Parallel, Samples, Training, prepare, train
from catchment.rtl.harness.glm_worker import Build
from catchment.rtl.verilate import RtlError
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.rtl_runner import RtlRunner, build_for
from catchment.sim.glm.runners import WorkerKind, make_runner


def samples_of(rng: random.Random, count: int, features: int, *, values: bool = False) -> Samples:
    numpy = np.random.default_rng(rng.getrandbits(64))
    matrix = numpy.random((count, features)) * (numpy.random((count, features)) < 0.3)
    scores = matrix @ numpy.standard_normal(features)
    return Samples(sp.csr_array(matrix), scores if values else np.where(scores > np.median(scores), 1.0, -1.0))


@pytest.mark.parametrize("loss", list(Loss))
def test_both_workers_give_the_same_model(loss: Loss, rng: random.Random) -> None:
    samples = samples_of(rng, 60, 150, values=loss == Loss.SQUARES)
    prepared = prepare(samples, Training(loss, workers=2, bits=rng.randrange(1, 9), batch=16, epochs=2))
    shares: list[float] = []
    model, reports = train(prepared, RtlRunner(shares.append))
    expected, expected_reports = train(prepared, LocalRunner())
    assert np.array_equal(model.weights, expected.weights) and model.weights.any()
    assert [r.loss for r in reports] == [r.loss for r in expected_reports]
    assert [r.saturated for r in reports] == [r.saturated for r in expected_reports]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert all(report.facts["clocks_per_micro_batch"] > 0 for report in reports[1:])


@pytest.mark.sampled(4)
def test_lost_frames_change_nothing_and_a_built_shape_says_nothing(rng: random.Random) -> None:
    prepared = prepare(samples_of(rng, 40, 150), Training(workers=2, batch=8, epochs=2))
    said: list[str] = []
    runner = make_runner(WorkerKind.RTL, None, prepared, drop=0.3, on_notice=said.append)
    fresh = not build_for(prepared).compiled
    model, reports = train(prepared, runner)
    assert np.array_equal(model.weights, train(prepared, LocalRunner())[0].weights)
    assert sum(report.facts["frames_lost"] for report in reports[1:]) > 0
    # two hops of 100 clocks at least, and the worker's own
    assert all(report.facts["all_reduce_seconds"] > 210 * 4e-9 for report in reports[1:])
    assert len(said) == fresh and build_for(prepared).compiled


def test_the_build_is_told_of(rng: random.Random, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The build is said before the compiler runs, which here fails at once."""
    monkeypatch.setattr("catchment.rtl.verilate.BUILD", tmp_path)
    monkeypatch.setattr("catchment.rtl.harness.glm_worker._library", _no_compiler)
    prepared = prepare(samples_of(rng, 16, 30), Training(engines=3, batch=8))
    said: list[str] = []
    with pytest.raises(GlmError, match="no compiler"):
        train(prepared, RtlRunner(on_notice=said.append))
    assert len(said) == 1 and "a worker of 3 engines" in said[0]


def _no_compiler(shape: Build) -> None:
    raise RtlError("no compiler")


def test_a_lab_is_for_software(rng: random.Random) -> None:
    prepared = prepare(samples_of(rng, 16, 30), Training(batch=8))
    with pytest.raises(GlmError, match="--lab shm with simulated hardware"):
        make_runner(WorkerKind.RTL, LabKind.SHM, prepared)


def test_what_hardware_does_not_do_is_refused(rng: random.Random) -> None:
    prepared = prepare(samples_of(rng, 20, 30), Training(workers=2, batch=16, parallel=Parallel.DATA))
    with pytest.raises(GlmError, match="features, not samples"):
        RtlRunner().run(prepared, lambda _: None)


def test_hardware_is_as_large_as_the_training(rng: random.Random) -> None:
    prepared = prepare(samples_of(rng, 8, 3000), Training(workers=2, engines=2, bits=8, batch=8))
    assert build_for(prepared) == Build(2, model_rows=64, replay_words=256)
    prepared = prepare(samples_of(rng, 8, 9000), Training(bits=16, batch=8))
    assert build_for(prepared) == Build(1, model_rows=1024, replay_words=8192)
