"""What hardware is told of a training, from what software has."""

from __future__ import annotations

from catchment.host.glm.numbers import BANKS, Loss, Numbers, Step
from catchment.rtl.harness.glm_worker import LossCode, Training

LOSS_CODES = {Loss.SQUARES: LossCode.SQUARES, Loss.LOGISTIC: LossCode.LOGISTIC, Loss.HINGE: LossCode.HINGE}


def hardware_training(numbers: Numbers, step: Step, loss: Loss, epochs: int = 1) -> Training:
    """Settings of rtl/glm for `epochs` epochs of one step."""
    return Training(
        numbers.bits,
        numbers.batch // BANKS,
        LOSS_CODES[loss],
        numbers.forward_shift,
        step.multiplier,
        step.shift,
        epochs,
    )
