"""The process group in C++ (host/torch/distributed/native) around the one in Python, where it can be used."""

from __future__ import annotations

import importlib
import logging
from types import ModuleType
from typing import Any, Final

import torch

from catchment.host.collectives import Block, CollectiveError, Fixed, Scaling
from catchment.host.torch.distributed.process_group import SwitchProcessGroup
from catchment.host.torch.distributed.settings import PROCESS_GROUP
from catchment.host.torch.distributed.switch_group import SwitchGroup

_LOG: Final = logging.getLogger("catchment.torch")
_MODULE: Final = "catchment.host._torch_group"


def in_native(group: SwitchProcessGroup, scaling: Scaling, wanted: bool | None) -> Any:
    """What torch is given for `group`: a C++ backend around it, or itself.

    Args:
        group: does what C++ does not.
        scaling: of operations that do not say.
        wanted: True: an error if there is none; False: `group` itself; None: as can be, and the log says why not.

    Raises:
        CollectiveError: kind ``system``: it is wanted and cannot be used.
    """
    switch = group.switch
    if wanted is False or switch is None:
        return group.be_the_group()
    if not isinstance(scaling, Block | Fixed):
        if wanted:
            raise CollectiveError(
                f"{PROCESS_GROUP}=c++ with the scaling {type(scaling).__name__}, which the one in C++ does not have",
                kind="system",
                hint="take block or fixed:E, or the process group in Python",
            )
        return group.be_the_group()
    try:
        module = _module()
    except ImportError as error:
        if wanted:
            raise CollectiveError(
                f"{PROCESS_GROUP}=c++: {error}", kind="system", hint="run `make native`, or take the one in Python"
            ) from None
        _LOG.warning("the process group in Python is used, which takes longer to start an operation: %s", error)
        return group.be_the_group()
    return module.SwitchBackend(
        rank=group.rank(),
        group=switch.communicator.handle,
        workers=[switch.order.worker(rank) for rank in range(group.size())],
        exponent=scaling.exponent if isinstance(scaling, Fixed) else None,
        packed=scaling.packed,
        python=group,
        explain=switch.failed,
    )


def switch_of(group: Any) -> SwitchGroup | None:
    """The switch of a group that torch has; None if it has none, or is of another backend."""
    if isinstance(group, SwitchProcessGroup):
        return group.switch
    try:
        backend = group._get_backend(torch.device("cpu"))
    except RuntimeError:
        return None
    inner = getattr(backend, "wrapped_pg", backend)  # what TORCH_DISTRIBUTED_DEBUG=DETAIL puts around it
    python = getattr(inner, "python", None)
    return python.switch if isinstance(python, SwitchProcessGroup) else None


def _module() -> ModuleType:
    module = importlib.import_module(_MODULE)
    ours = torch.__version__.split("+")[0]
    if module.TORCH_VERSION.split("+")[0] != ours:
        raise ImportError(f"it is built for torch {module.TORCH_VERSION}, this is {ours}: run `make native`")
    return module
