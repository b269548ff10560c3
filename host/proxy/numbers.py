"""Gradients as the integers that proxies add: the format of all endpoints (docs/explanation/number-formats.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from catchment.host.proxy.errors import ProxyError
from catchment.wire.generated.constants import DataType


def elements(name: str, array: Any, numel: int) -> npt.NDArray[np.float32]:
    """A tensor's fp32 elements, flat, in the caller's memory.

    Raises:
        ProxyError: not fp32, not C-contiguous, or not `numel` elements.
    """
    found = array.detach().numpy() if hasattr(array, "detach") else np.asarray(array)
    if found.dtype != np.float32 or not found.flags.c_contiguous:
        raise ProxyError(f"tensor {name}: {found.dtype}, strides {found.strides}: give contiguous fp32")
    if found.size != numel:
        raise ProxyError(f"tensor {name} has {numel} elements, {found.size} are given")
    flat: npt.NDArray[np.float32] = found.reshape(-1)
    return flat


def headroom(clients: int) -> int:
    """h: bits that the sum of so many clients needs above a client's own."""
    return (clients - 1).bit_length()


def quantized(source: npt.NDArray[np.float32], exponent: int, clients: int) -> npt.NDArray[np.int32]:
    """The integers of floats |x| < 2**exponent; larger ones are cut."""
    from catchment.host import _native  # noqa: PLC0415  the error for a missing build belongs to the first use

    lanes = np.empty(source.size, ">i4")
    _native.quantize(
        _native.Pinned(source, False), DataType.FP32, exponent, headroom(clients), _native.Pinned(lanes, True)
    )
    return lanes.astype(np.int32)


def dequantized(lanes: npt.NDArray[np.int32], exponent: int, clients: int, out: npt.NDArray[np.float32]) -> None:
    """The opposite, into `out`."""
    from catchment.host import _native  # noqa: PLC0415  as above

    wire = lanes.astype(">i4")
    _native.dequantize(
        _native.Pinned(wire, False), exponent, headroom(clients), DataType.FP32, _native.Pinned(out, True)
    )
