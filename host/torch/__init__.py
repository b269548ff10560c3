"""PyTorch training with the model in the network (LuWu, Figure 5): `attach(model, endpoint)` and train as before."""

from catchment.host.torch.attach import attach
from catchment.host.torch.hooks import InNetwork, WorkerMemory
from catchment.host.torch.partition import ModelLayer, layers_of, table_of

__all__ = ["InNetwork", "ModelLayer", "WorkerMemory", "attach", "layers_of", "table_of"]
