"""What hardware is told of a training, from what software has."""

from __future__ import annotations

from catchment.host.glm.numbers import Loss, Numbers, Step
from catchment.rtl.harness.glm_worker import Training
from catchment.wire.generated.glm_numbers import BANKS, LossCode

LOSS_CODES = {loss: LossCode[loss.name] for loss in Loss}


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
