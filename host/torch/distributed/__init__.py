"""torch.distributed through the switch: `dist.init_process_group("catchment")` and train on (docs/howto/pytorch.md).

torch finds the backend by itself (entry point `torch.backends`); where that is turned off
(TORCH_DEVICE_BACKEND_AUTOLOAD=0) importing this package registers it.
"""

from __future__ import annotations

from catchment.host.torch.distributed.name import BACKEND
from catchment.host.torch.distributed.registration import register

register()

__all__ = ["BACKEND", "register"]
