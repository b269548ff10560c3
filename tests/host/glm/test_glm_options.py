"""Options of a training of another type, or that cannot be, are refused where they are made, with what is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from catchment.host.glm import (
    GlmError,
    LocalRunner,
    Loss,
    Numbers,
    Samples,
    Shares,
    Step,
    Training,
    prepare,
    read_samples,
    train,
)
from catchment.host.glm.model import Model

NO_COUNT: list[Any] = [True, 1.5, math.nan, math.inf, -1, "3", None, [], b"3", np.float32(2)]
NO_NUMBER: list[Any] = [True, math.nan, math.inf, -1, "3", [], b"3", 10**400]
NUMBERS = Numbers(4, 64)
COUNTS: dict[str, Callable[[Any], object]] = {
    "Training.workers": lambda count: Training(workers=count),
    "Training.engines": lambda count: Training(engines=count),
    "Training.bits": lambda count: Training(bits=count),
    "Training.batch": lambda count: Training(batch=count),
    "Training.micro_batch": lambda count: Training(micro_batch=count),
    "Training.epochs": lambda count: Training(epochs=count),
    "Training.fraction": lambda count: Training(fraction=count),
    "Training.begun": lambda count: Training(begun=count),
    "Shares.features": Shares,
    "Shares.workers": lambda count: Shares(1, count),
    "Numbers.bits": lambda count: Numbers(count, 64),
    "Numbers.batch": lambda count: Numbers(4, count),
}
RATES: dict[str, Callable[[Any], object]] = {
    "Training.rate": lambda number: Training(rate=number),
    "Training.decay": lambda number: Training(decay=number),
    "Step.of": lambda number: Step.of(number, NUMBERS),
}


@pytest.mark.parametrize("made", COUNTS.values(), ids=COUNTS)
def test_what_is_no_count_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_COUNT:
        with pytest.raises(GlmError) as caught:
            made(wrong)
        assert repr(wrong) in str(caught.value)


@pytest.mark.parametrize("made", RATES.values(), ids=RATES)
def test_what_is_no_number_is_refused(made: Callable[[Any], object]) -> None:
    for wrong in NO_NUMBER:
        with pytest.raises(GlmError) as caught:
            made(wrong)
        assert repr(wrong) in str(caught.value)


def test_numbers_of_other_types_are_taken() -> None:
    assert Training(workers=np.int64(2), rate=np.float32(0.5), batch=np.uint8(16)).numbers.batch == 16


@pytest.mark.parametrize("number", [Fraction, Decimal, np.float16, np.float32, torch.tensor])
def test_rates_of_other_types_are_floats(number: Callable[[float], Any]) -> None:
    for options in ({"rate": number(0.5), "decay": 0.25}, {"rate": 0.5, "decay": number(0.25)}):
        assert Training(**options) == Training(rate=0.5, decay=0.25)
    assert Step.of(number(0.5), NUMBERS) == Step.of(0.5, NUMBERS)


def test_numbers_of_few_bits_do_not_wrap_around() -> None:
    small = Training(
        bits=np.uint8(4), batch=np.uint8(64), micro_batch=np.uint8(8), fraction=np.uint8(20), epochs=np.uint8(2)
    )
    usual = Training(bits=4, batch=64, micro_batch=8, fraction=20, epochs=2)
    assert small == usual and small.steps(0.5) == usual.steps(0.5)
    narrow, wide = Numbers(np.int8(4), np.int8(64), np.int8(20)), Numbers(4, 64, 20)
    assert (narrow.rates, narrow.forward_shift) == (wide.rates, wide.forward_shift)
    narrow.check_features(1000)
    assert Shares(np.uint8(200), np.uint8(2)).of_worker(1) == Shares(200, 2).of_worker(1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "logistic"}, "loss 'logistic': give one of squares, logistic, hinge of Loss"),
        ({"loss": None}, "loss None: give one of"),
        ({"parallel": "data"}, "parallel 'data': give one of model, data of Parallel"),
        ({"epochs": 10**30}, "epochs: give at least 1, at most 1000000"),
        ({"begun": 10**30}, "epochs that came before: give how many"),
        ({"seed": 1.5}, "the seed 1.5: give 0 or more, a whole number"),
        ({"seed": True}, "the seed True: give"),
        ({"bias": "no"}, "a constant feature of 'no': give True or False"),
        ({"bias": 1}, "a constant feature of 1: give True or False"),
    ],
)
def test_options_say_what_they_take(options: dict[str, Any], words: str) -> None:
    with pytest.raises(GlmError, match=words):
        Training(**options)


def test_samples_of_another_kind_are_refused(tmp_path: Path) -> None:
    samples, training = Samples.of(np.eye(4), [0, 1, 0, 1]), Training(epochs=1)
    model, _ = train(prepare(samples, training), LocalRunner())
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Samples.of(np.eye(1), [10**400]), "labels that are no numbers"),
        (lambda: Samples.of([[10**400]], [1]), "features that are no matrix of numbers"),
        (lambda: prepare(np.eye(1), training), r"samples array\(\[\[1.\]\]\): give Samples, as Samples.of"),  # type: ignore[arg-type]
        (lambda: prepare(samples, {"epochs": 1}), r"training \{'epochs': 1\}: give a Training"),  # type: ignore[arg-type]
        (lambda: prepare(samples, training, after="model"), r"after 'model': give a Model, or None"),  # type: ignore[arg-type]
        (lambda: prepare(samples, training, positive="1"), "a positive class '1'"),  # type: ignore[arg-type]
        (lambda: prepare(samples, training, positive=[1]), r"a positive class \[1\]"),  # type: ignore[arg-type]
        (lambda: prepare(samples, training, sample_weight=["a"] * 4), "weights that are no"),  # type: ignore[arg-type]
        (lambda: read_samples(str(tmp_path / "a")), "samples in '.*give the Path of a file"),  # type: ignore[arg-type]
        (lambda: read_samples(tmp_path / "a", features=1.5), "1.5 features"),  # type: ignore[arg-type]
        (lambda: Model.load(str(tmp_path / "a")), "a model in '.*give the Path of a file"),  # type: ignore[arg-type]
        (lambda: model.save(str(tmp_path / "a")), "a model in '.*give the Path of a file"),  # type: ignore[arg-type]
    ]
    for call, words in cases:
        with pytest.raises(GlmError, match=words):
            call()
    assert model.loss is Loss.LOGISTIC
    assert not list(tmp_path.iterdir())
