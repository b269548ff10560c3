"""Trainings on workers behind a switch on shared memory: the golden model's weights, with and without lost frames."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import r2_score
from typer.testing import CliRunner

from catchment.cli import app
from catchment.host.glm import GlmError, LocalRunner, Loss, Model, Parallel, Report, Samples, Training, prepare, train
from catchment.host.glm.estimators import GLMClassifier
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.network_runner import NetworkRunner
from catchment.sim.glm.runners import WorkerKind, make_runner


def _samples(rng: random.Random, samples: int, features: int) -> Samples:
    draw = np.random.default_rng(rng.randrange(1 << 32))
    values = draw.random((samples, features)) * (draw.random((samples, features)) < 0.3)
    scores = values @ draw.standard_normal(features)
    return Samples.of(values, np.where(scores > np.median(scores), 1, -1))


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("training", "drop"),
    [
        (Training(workers=3, bits=4, batch=16, epochs=2), 0.02),
        (Training(workers=2, bits=8, batch=32, micro_batch=16, epochs=2, loss=Loss.HINGE), 0.0),
        (Training(workers=2, bits=4, batch=32, epochs=2, parallel=Parallel.DATA), 0.02),
    ],
)
def test_processes_behind_a_switch(training: Training, drop: float, rng: random.Random) -> None:
    """65 samples: the last mini-batch and micro-batch are short; 100 features: the third worker has none."""
    prepared = prepare(_samples(rng, 65, 100), training)
    wanted, expected = train(prepared, LocalRunner())
    heard: list[Report] = []
    model, reports = train(prepared, NetworkRunner(LabKind.SHM, loss=drop), heard.append)
    assert np.array_equal(model.weights, wanted.weights)
    assert [(r.epoch, r.loss, r.score) for r in reports] == [(r.epoch, r.loss, r.score) for r in expected]
    assert heard == reports and all(report.facts["all_reduces"] > 0 for report in reports[1:])


def test_an_estimator_is_fitted_by_processes_behind_a_switch(rng: random.Random) -> None:
    samples = _samples(rng, 40, 70)
    behind = GLMClassifier(workers=2, batch=16, max_iter=2, runner=NetworkRunner(LabKind.SHM))
    here = clone(behind).set_params(runner=None).fit(samples.matrix, samples.labels)
    behind.fit(samples.matrix, samples.labels)
    assert np.array_equal(behind.models_[0].weights, here.models_[0].weights)
    assert behind.reports_[0][-1].facts["all_reduces"] > 0 and clone(behind).get_params()["workers"] == 2


def test_a_worker_that_dies_is_named(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker's share cannot be read: the training ends with its name instead of waiting for it."""
    from catchment.sim.glm import network_runner

    def damaged(prepared: object, wid: int, path: Path) -> None:
        original(prepared, wid, path)  # type: ignore[arg-type]
        if wid == 1:
            path.write_bytes(b"nothing")

    original = network_runner.write_share
    monkeypatch.setattr(network_runner, "write_share", damaged)
    prepared = prepare(_samples(rng, 16, 70), Training(workers=2, epochs=1, batch=8))
    with pytest.raises(GlmError, match="w1"):
        NetworkRunner(LabKind.SHM).run(prepared, lambda _: None)


def test_choices_that_do_not_go_together(rng: random.Random) -> None:
    prepared = prepare(_samples(rng, 16, 70), Training(epochs=1, batch=32, micro_batch=16))
    with pytest.raises(GlmError, match="--lab shm"):
        make_runner(WorkerKind.SOFTWARE, LabKind.LOCAL, prepared, drop=0.1)
    with pytest.raises(GlmError, match="at least 0 and below 1"):
        make_runner(WorkerKind.SOFTWARE, LabKind.SHM, prepared, drop=1.0)
    with pytest.raises(GlmError, match="the hardware has 8 banks"):
        make_runner(WorkerKind.RTL, LabKind.SHM, prepared)


@pytest.fixture
def data(tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    samples = _samples(rng, 100, 30)
    dump_svmlight_file(samples.matrix, samples.labels, "data.libsvm", zero_based=False)
    return Path("data.libsvm")


def test_the_command(data: Path) -> None:
    command = ["glm", "train", str(data), "--workers", "2", "--batch", "16", "--epochs", "3", "--test", str(data)]
    shm, local = (
        CliRunner().invoke(app, [*command, "--lab", lab, "-o", f"{lab}.npz", "--json"]) for lab in ("shm", "local")
    )
    assert shm.exit_code == local.exit_code == 0, (shm.output, local.output)
    document = json.loads(shm.stdout)
    losses = [row["loss"] for row in document["epochs"]]
    assert len(losses) == 4 and losses[-1] < losses[0]
    assert losses == [row["loss"] for row in json.loads(local.stdout)["epochs"]]
    assert document["test"]["accuracy"] == document["epochs"][-1]["accuracy"]
    assert np.array_equal(Model.load(Path("shm.npz")).weights, Model.load(Path("local.npz")).weights)
    assert Path("shm.svg").read_text().startswith("<?xml")

    predicted = CliRunner().invoke(app, ["glm", "predict", "shm.npz", str(data), "--json"])
    assert predicted.exit_code == 0, predicted.output
    found = json.loads(predicted.stdout)
    assert found["accuracy"] == document["test"]["accuracy"] and set(found["predictions"]) <= {-1.0, 1.0}
    written = CliRunner().invoke(app, ["glm", "predict", "shm.npz", str(data), "-o", "predictions.txt"])
    assert (
        written.exit_code == 0
        and [float(x) for x in Path("predictions.txt").read_text().split()] == found["predictions"]
    )


def test_the_table_and_scikit_learn_s_file(data: Path) -> None:
    import joblib

    done = CliRunner().invoke(
        app, ["glm", "train", str(data), "--lab", "local", "--epochs", "2", "--sklearn", "model.joblib"]
    )
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.stdout and "data.model.npz, data.model.svg" in done.stdout
    assert joblib.load("model.joblib").coef_.shape == (1, 30)


def test_labels_that_the_model_does_not_know_are_named(data: Path) -> None:
    """Predictions there are, but no accuracy, which would be of something else."""
    assert CliRunner().invoke(app, ["glm", "train", str(data), "--lab", "local", "--epochs", "1"]).exit_code == 0
    Path("other.libsvm").write_text("1 1:2\n2 3:1\n7 1:1\n")
    done = CliRunner().invoke(app, ["glm", "predict", "data.model.npz", "other.libsvm", "--json"])
    assert done.exit_code == 0 and "labels other than -1 and 1: 2, 7" in done.stderr
    found = json.loads(done.stdout)
    assert len(found["predictions"]) == 3 and "accuracy" not in found and "loss" not in found


def test_predicted_classes_have_all_their_digits(data: Path) -> None:
    names = [20240101001, 20240101002]
    Path("long.libsvm").write_text("".join(f"{names[k % 2]} {k % 2 + 1}:1\n" for k in range(16)))
    assert CliRunner().invoke(app, ["glm", "train", "long.libsvm", "--lab", "local"]).exit_code == 0
    done = CliRunner().invoke(app, ["glm", "predict", "long.model.npz", "long.libsvm"])
    assert [int(line) for line in done.stdout.split()] == [names[k % 2] for k in range(16)]


def test_targets_far_from_the_training_s_count_as_they_are(data: Path) -> None:
    """The loss of new samples is of their own targets, which trainings cut to four times their range."""
    Path("numbers.libsvm").write_text("0 1:1\n10 1:2\n")
    Path("far.libsvm").write_text("0 1:1\n1000 1:2\n")
    command = ["glm", "train", "numbers.libsvm", "--loss", "squares", "--lab", "local", "--json"]
    tested = json.loads(CliRunner().invoke(app, [*command, "--test", "far.libsvm"]).stdout)["test"]
    done = CliRunner().invoke(app, ["glm", "predict", "numbers.model.npz", "far.libsvm", "--json"])
    found = json.loads(done.stdout)
    assert found["r2"] == tested["r2"] == pytest.approx(r2_score([0, 1000], found["predictions"]))


def test_one_class_against_the_others(data: Path) -> None:
    """The others have no name: null, as JSON knows no nan; all their labels are known."""
    Path("three.libsvm").write_text("".join(f"{k % 3} {k % 3 + 1}:1\n" for k in range(30)))
    command = ["glm", "train", "three.libsvm", "--lab", "local", "--positive", "2", "--batch", "8"]
    assert CliRunner().invoke(app, [*command, "--test", "three.libsvm"]).exit_code == 0
    done = CliRunner().invoke(app, ["glm", "predict", "three.model.npz", "three.libsvm", "--json"])
    assert "NaN" not in done.stdout
    found = json.loads(done.stdout)
    assert found["predictions"] == [2.0 if k % 3 == 2 else None for k in range(30)] and found["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["train", "none.libsvm"], 1, "No such file"),
        (["train", "data.libsvm", "--loss", "other"], 2, "one of squares, logistic, hinge"),
        (["train", "data.libsvm", "--lab", "moon"], 2, "one of mininet, shm, local"),
        (["train", "data.libsvm", "--micro-batch", "5"], 1, "micro-batches of 5"),
        (["train", "data.libsvm", "--workers", "99"], 1, "99 workers"),
        (["train", "data.libsvm", "-o", "no/such/model.npz"], 1, "there is no folder"),
        (["train", "data.libsvm", "--plot", "plot.xyz"], 1, "names no kind of plot"),
        (["train", "data.libsvm", "--sklearn", "."], 1, "it is a folder"),
        (["train", "data.libsvm", "-o", "./data.libsvm"], 1, "would overwrite"),
        (["train", "data.libsvm", "-o", "model.svg"], 1, "model.svg: it would be written twice"),
        (["train", "data.libsvm", "-o", "model.npz", "--sklearn", "./model.npz"], 1, "would be written twice"),
        (["predict", "data.libsvm", "bad.libsvm", "-o", "bad.libsvm"], 1, "bad.libsvm: it would overwrite"),
        (["predict", "data.libsvm", "bad.libsvm", "-o", "data.libsvm"], 1, "data.libsvm: it would overwrite"),
        (["train", "data.libsvm", "--test", "other.libsvm"], 1, "labels that data.libsvm does not have: 2, 7"),
        (["train", "data.libsvm", "--lab", "shm", "--timeout", "nan"], 2, "1000000"),
        (["train", "data.libsvm", "--lab", "shm", "--timeout", "0"], 1, "a timeout of 0.0 s"),
        (["train", "data.libsvm", "--worker", "rtl", "--timeout", "9"], 1, "--timeout with simulated hardware"),
        (["train", "bad.libsvm"], 1, r"bad.libsvm:2: index 1 after 3"),
        (["predict", "data.libsvm", "data.libsvm"], 1, "is no model"),
    ],
)
def test_mistakes(data: Path, arguments: list[str], code: int, says: str) -> None:
    Path("bad.libsvm").write_text("1 1:2\n-1 3:1 1:1\n")
    Path("other.libsvm").write_text("1 1:2\n2 3:1\n7 1:1\n")
    done = CliRunner().invoke(app, ["glm", *arguments])
    assert (done.exit_code, says in (done.output + str(done.exception))) == (code, True), (done.output, done.exception)
