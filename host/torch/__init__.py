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

__getattr__ = _lazy_exports(
    __name__,
    {
        "InNetwork": "hooks",
        "ModelLayer": "partition",
        "WorkerMemory": "hooks",
        "attach": "attachment",
        "layers_of": "partition",
        "table_of": "partition",
    },
)

__all__ = ["InNetwork", "ModelLayer", "WorkerMemory", "attach", "layers_of", "table_of"]
