"""What the companion can carry: refused before anything is sent, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
import torch.distributed as dist

from catchment.host.collectives import CollectiveError

_FLOATS: Final = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_NUMBERS: Final = (torch.int64, torch.int32, torch.int8, torch.uint8)
_INTEGERS: Final = (*_NUMBERS, torch.bool)
_COMPLEX: Final = (torch.complex64, torch.complex128)
_EVERY: Final = (*_FLOATS, *_INTEGERS, *_COMPLEX)
_REAL: Final = (*_FLOATS, *_INTEGERS)
_REDUCED: Final[dict[Any, tuple[torch.dtype, ...]]] = {
    dist.ReduceOp.SUM: _EVERY,
    dist.ReduceOp.AVG: (*_FLOATS, *_NUMBERS, *_COMPLEX),
    dist.ReduceOp.PRODUCT: _REAL,
    dist.ReduceOp.MIN: _REAL,
    dist.ReduceOp.MAX: _REAL,
    dist.ReduceOp.BAND: _INTEGERS,
    dist.ReduceOp.BOR: _INTEGERS,
    dist.ReduceOp.BXOR: _INTEGERS,
}
_MOVED: Final[dict[str, tuple[torch.dtype, ...]]] = {"gather": _REAL, "all_gather_single": _REAL}


def name_of(reduction: Any) -> str:
    """A reduction in torch's word."""
    operation = getattr(reduction, "op", reduction)
    return str(getattr(operation, "name", operation))


def in_words(call: str, tensors: Sequence[torch.Tensor], reduction: Any = None, root: int | None = None) -> str:
    """A call, as in ``all_reduce(4 x float64, MIN)``."""
    parts = [_amount(tensor) for tensor in tensors[:3]]
    parts += [f"{len(tensors) - 3} more"] if len(tensors) > 3 else []
    parts += [name_of(reduction)] if reduction is not None else []
    parts += [f"root {root}"] if root is not None else []
    return f"{call}({', '.join(parts)})"


def check_carried(call: str, tensors: Sequence[torch.Tensor], reduction: Any, asked: str) -> None:
    """Refuse what gloo does not do with these types; `asked`: the call in words.

    Raises:
        CollectiveError: kind ``argument``.
    """

    def refused(message: str, hint: str) -> CollectiveError:
        return CollectiveError(message, kind="argument", operation=asked, hint=hint)

    dense = [tensor for tensor in tensors if tensor.layout == torch.strided]
    for tensor in dense:
        if tensor.device.type != "cpu":
            raise refused(f"a tensor on {tensor.device}", "copy it to the CPU first")
    operation = getattr(reduction, "op", reduction)
    if operation is not None and operation not in _REDUCED:
        raise refused(f"nobody carries out {name_of(reduction)}", "scale the tensor and take SUM")
    taken = _MOVED.get(call, _EVERY) if operation is None else _REDUCED[operation]
    wrong = sorted({_type(tensor.dtype) for tensor in dense if tensor.dtype not in taken})
    if wrong:
        does = call if operation is None else f"{call} with {name_of(reduction)}"
        hint = f"it takes {', '.join(map(_type, taken))}: convert it"
        raise refused(f"nobody carries out {does} of {', '.join(wrong)}", hint)


def _amount(tensor: torch.Tensor) -> str:
    shape = "x".join(map(str, tensor.shape)) if tensor.dim() > 1 else str(tensor.numel())
    return f"{shape} x {_type(tensor.dtype)}" if tensor.dim() < 2 else f"[{shape}] x {_type(tensor.dtype)}"


def _type(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
