"""PyTorch training with the model in the network (LuWu, Figure 5): `attach(model, endpoint)` and train as before.

`catchment.host.torch.distributed` is the backend of torch.distributed, which torch imports with itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.host.lazy_exports import lazy_exports as _lazy_exports

if TYPE_CHECKING:
    from catchment.host.torch.attachment import attach
    from catchment.host.torch.hooks import InNetwork, WorkerMemory
    from catchment.host.torch.partition import ModelLayer, layers_of, table_of
    from catchment.host.torch.proxied import ProxiedGradients, ProxiedParameters, gradient_table, parameters_of

__getattr__ = _lazy_exports(
    __name__,
    {
        "InNetwork": "hooks",
        "ModelLayer": "partition",
        "ProxiedGradients": "proxied",
        "ProxiedParameters": "proxied",
        "WorkerMemory": "hooks",
        "attach": "attachment",
        "gradient_table": "proxied",
        "layers_of": "partition",
        "parameters_of": "proxied",
        "table_of": "partition",
    },
)

__all__ = [
    "InNetwork",
    "ModelLayer",
    "ProxiedGradients",
    "ProxiedParameters",
    "WorkerMemory",
    "attach",
    "gradient_table",
    "layers_of",
    "parameters_of",
    "table_of",
]
