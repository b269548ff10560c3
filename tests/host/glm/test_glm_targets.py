"""Labels as integers and back, losses and scores, against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from catchment.host.glm.errors import GlmError
from catchment.host.glm.numbers import Loss
from catchment.host.glm.targets import Targets, mean_loss, named, score, score_key, score_name
from catchment.wire.generated.glm_numbers import ACTIVATION_FRACTION, TARGET_LIMIT

ONE = 1 << ACTIVATION_FRACTION


def test_the_smaller_class_is_the_negative_one() -> None:
    targets = Targets.fit(Loss.LOGISTIC, np.array([7.0, 3.0, 7.0]))
    assert targets.classes == (3.0, 7.0)
    assert targets.encode(np.array([3.0, 7.0, 9.0])).tolist() == [-1, 1, -1]
    assert targets.predictions(np.array([-0.1, 0.0, 0.1])).tolist() == [3.0, 3.0, 7.0]
    assert targets.unknown(np.array([9.0, 3.0, 5.0, 9.0])).tolist() == [5.0, 9.0]


def test_one_class_against_the_others() -> None:
    labels = np.array([1.0, 2.0, 3.0])
    several = Targets.fit(Loss.HINGE, labels, positive=2.0)
    assert several.classes is not None
    assert math.isnan(several.classes[0])
    assert several.classes[1] == 2.0
    assert several.encode(labels).tolist() == [-1, 1, -1]
    assert several.unknown(np.array([9.0])).size == 0
    assert Targets.fit(Loss.HINGE, labels[:2], positive=1.0).classes == (2.0, 1.0)


@pytest.mark.parametrize("positive", [False, np.False_, 0, np.int8(0), np.float32(0)])
def test_labels_that_are_true_or_false_have_such_a_class(positive: float) -> None:
    labels = np.asarray([True, False], np.float64)
    assert Targets.fit(Loss.LOGISTIC, labels, positive=positive).classes == (1.0, 0.0)


@pytest.mark.parametrize(
    ("loss", "labels", "positive", "says"),
    [
        (Loss.SQUARES, [1.0, 2.0], 1.0, "a positive class for least squares"),
        (Loss.SQUARES, [-1e308, 1e308], None, r"labels of -1e\+308 to 1e\+308, which is no range"),
        (Loss.SQUARES, [1e308, 1.5e308], None, r"which is no range"),
        (Loss.LOGISTIC, [1234567.0, 1234568.0], 1.0, r"class 1 and others are needed; there are 1234567, 1234568"),
        (Loss.LOGISTIC, [1.0, 2.0], 3.0, r"class 3 and others are needed; there are 1, 2"),
        (Loss.LOGISTIC, [1.0, 1.0], 1.0, r"class 1 and others are needed"),
        (Loss.LOGISTIC, [1.0, 1.0], None, r"1 class \(1\) for the loss logistic.*samples of both"),
        (Loss.HINGE, [1.0, 2.0, 3.0], None, r"3 classes \(1, 2, 3\) for the loss hinge.*--positive"),
    ],
)
def test_labels_that_are_refused(loss: Loss, labels: list[float], positive: float | None, says: str) -> None:
    with pytest.raises(GlmError, match=f"(?s){says}"):
        Targets.fit(loss, np.array(labels), positive=positive)


def test_targets_of_least_squares_are_mapped_to_one_and_minus_one() -> None:
    targets = Targets.fit(Loss.SQUARES, np.array([10.0, 30.0, 15.0]))
    assert (targets.classes, targets.offset, targets.scale) == (None, 20.0, 10.0)
    assert targets.encode(np.array([10.0, 20.0, 30.0, 25.0])).tolist() == [-ONE, 0, ONE, ONE // 2]
    assert targets.exact(np.array([10.0, 1e9])).tolist() == [-ONE, (1e9 - 20) / 10 * ONE]
    assert targets.encode(np.array([1e9, -1e9])).tolist() == [TARGET_LIMIT, -TARGET_LIMIT]
    assert targets.predictions(np.array([-1.0, 0.5])).tolist() == [10.0, 25.0]
    assert targets.unknown(np.array([1.0])).size == 0


def test_targets_that_are_all_the_same_have_a_scale() -> None:
    targets = Targets.fit(Loss.SQUARES, np.array([5.0, 5.0]))
    assert (targets.offset, targets.scale) == (5.0, 1.0)


def test_mean_losses() -> None:
    signs = np.array([1, -1, 1], np.int32)
    activations = np.array([2.0, 0.5, -1.0])
    assert mean_loss(Loss.HINGE, activations, signs) == pytest.approx((0.0 + 1.5 + 2.0) / 3)
    logistic = sum(math.log1p(math.exp(-margin)) for margin in (2.0, -0.5, -1.0)) / 3
    assert mean_loss(Loss.LOGISTIC, activations, signs) == pytest.approx(logistic)
    targets = np.array([ONE, -ONE, 0], np.int32)
    assert mean_loss(Loss.SQUARES, activations, targets) == pytest.approx((1.0 + 2.25 + 1.0) / 6)


def test_scores() -> None:
    signs = np.array([1, -1, 1, -1], np.int32)
    assert score(Loss.HINGE, np.array([1.0, -1.0, -1.0, 0.0]), signs) == 0.75
    targets = np.array([ONE, -ONE], np.int32)
    assert score(Loss.SQUARES, np.array([1.0, -1.0]), targets) == 1.0
    assert score(Loss.SQUARES, np.array([0.0, 0.0]), targets) == 0.0
    assert score(Loss.SQUARES, np.array([0.5, -1.0]), targets) == pytest.approx(1 - 0.25 / 2)
    assert score(Loss.SQUARES, np.array([1.0]), targets[:1]) == 0.0
    assert [(score_name(loss), score_key(loss)) for loss in (Loss.SQUARES, Loss.HINGE)] == [
        ("R squared", "r2"),
        ("accuracy", "accuracy"),
    ]


def test_a_message_names_the_first_classes() -> None:
    assert named(np.arange(8.0)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert named(np.arange(9.0)) == "0, 1, 2, 3, 4, 5, 6, 7, ..."
