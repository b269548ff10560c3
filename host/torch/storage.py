"""A layer's parameters on a worker: one flat buffer that exists only between a pull and a free."""

from __future__ import annotations

import torch
from torch import nn

from catchment.host.layers import TrainingError
from catchment.host.torch.homes import Arrived
from catchment.host.torch.partition import ModelLayer


class LayerStorage:
    """Makes the parameters of one layer views of a flat fp32 buffer whose memory comes and goes.

    The parameters keep their identity; only the memory under them is freed (`untyped_storage().resize_(0)`) and put
    back. Autograd's saved tensors are views of the same storage, so backward finds the refilled values: nothing is
    recomputed and no saved tensor keeps parameters alive.
    """

    def __init__(self, layer: ModelLayer, model: nn.Module) -> None:
        """Take the layer's parameters over and free their memory; parameters on the meta device never had any."""
        self.spec = layer.spec
        self.kept = layer.kept
        self._flat = torch.empty(self.spec.numel, dtype=torch.float32, device="cpu")
        self.parameters: list[nn.Parameter] = []
        for tensor, name, parameter in zip(self.spec.tensors, layer.names, layer.parameters, strict=True):
            if parameter.dtype is not torch.float32:
                raise TrainingError(f"parameter {tensor.name} is {parameter.dtype}; workers compute in torch.float32")
            view = self._flat[tensor.span].view(tensor.shape)
            if parameter.is_meta:
                self.parameters.append(_replace(model, layer.module, name, parameter, view))
            else:
                parameter.data = view
                self.parameters.append(parameter)
        self.free()

    @property
    def resident(self) -> bool:
        """True while the parameters have memory."""
        return self._flat.untyped_storage().nbytes() > 0

    @property
    def nbytes(self) -> int:
        """Bytes of the layer while it is resident."""
        return self.spec.numel * 4

    def fill(self, arrived: Arrived) -> None:
        """Give the parameters memory and the values that have arrived, widened to fp32."""
        self._flat.untyped_storage().resize_(self.nbytes)
        with torch.no_grad():
            arrived.copy_to(self._flat)

    def free(self) -> None:
        """Take the memory away; the parameters must not be read until the next `fill`."""
        self._flat.untyped_storage().resize_(0)


def _replace(model: nn.Module, root: nn.Module, name: str, old: nn.Parameter, view: torch.Tensor) -> nn.Parameter:
    """Put a parameter over `view` in the place of one on the meta device, wherever the model has it."""
    new = nn.Parameter(torch.empty(0, device="cpu"), requires_grad=old.requires_grad)
    new.data = view  # not Parameter(view): that would share the buffer's version counter, and backward would refuse
    for module in model.modules():
        for local, parameter in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            if parameter is old:
                setattr(module, local, new)
    if dict(root.named_parameters()).get(name) is not new:
        raise TrainingError(f"parameter {name} could not be taken off the meta device")
    return new
