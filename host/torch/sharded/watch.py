"""Refuses parameters that are used while their layer does not compute, when another layer may have their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, final

import torch
from torch.overrides import TorchFunctionMode

from catchment.host.torch.sharded.errors import ShardingError

_GETTER: Final = "__get__"
_VIEWS: Final = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
"""Attributes of a tensor that are its elements; all others only describe it."""
_DESCRIBES: Final = frozenset(
    {
        "__set__", "__delete__", "__hash__", "__len__", "__repr__", "__format__",
        "size", "dim", "ndimension", "numel", "nelement", "element_size", "stride", "storage_offset", "data_ptr",
        "get_device", "is_contiguous", "is_floating_point", "is_complex", "is_signed", "has_names",
        "register_hook", "register_post_accumulate_grad_hook", "requires_grad_", "retain_grad",
    }
)  # fmt: skip
"""Functions that do not look at elements."""


@final
class Watch(TorchFunctionMode):
    """Looks at each call of torch that is made of parameters, outside of torch's own calls.

    Args:
        layers: the layer of each parameter, by its id.
        names: of the layers.
        usable: whether a layer's parameters may be used now.
    """

    def __init__(self, layers: Mapping[int, int], names: Sequence[str], usable: Callable[[int], bool]) -> None:
        super().__init__()
        self._layers = layers
        self._names = names
        self._usable = usable

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Carry out a call, unless it would compute with another layer's parameters.

        Raises:
            ShardingError: it would; the message names the layer.
        """
        kwargs = kwargs or {}
        for index in self._layers_in((*args, *kwargs.values())):
            if not self._usable(index) and _looks_at_elements(func):
                raise ShardingError(
                    f"parameters of layer {self._names[index]} are used while it does not compute, when other layers "
                    "may have their memory: name it in kept=, or in layers= a module that has both uses in it"
                )
        return func(*args, **kwargs)

    def _layers_in(self, values: Iterable[Any]) -> Iterable[int]:
        for value in values:
            if isinstance(value, torch.Tensor):
                index = self._layers.get(id(value))
                if index is not None:
                    yield index
            elif isinstance(value, (tuple, list)):
                yield from self._layers_in(value)


def _looks_at_elements(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    if name == _GETTER:
        return getattr(func.__self__, "__name__", "") in _VIEWS
    return name not in _DESCRIBES
