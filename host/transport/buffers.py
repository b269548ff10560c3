"""What a caller may push and pull: numpy arrays, torch tensors, anything with the buffer protocol."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from catchment.host.errors import EndpointError
from catchment.wire.generated.constants import DataType

if TYPE_CHECKING:
    from catchment.host import _native

_FORMATS = {
    ("f", 4): DataType.FP32,
    ("e", 2): DataType.FP16,
    ("H", 2): DataType.BF16,
    ("i", 4): DataType.INT32,
    ("l", 4): DataType.INT32,
}
_TORCH = {
    "torch.float32": DataType.FP32,
    "torch.float16": DataType.FP16,
    "torch.bfloat16": DataType.BF16,
    "torch.int32": DataType.INT32,
}
ITEM_BYTES = {DataType.BYTES: 1, DataType.INT32: 4, DataType.FP32: 4, DataType.FP16: 2, DataType.BF16: 2}


_TENSOR = "data_ptr"
"""What a tensor has, and no other array."""
_DTYPES: dict[Any, DataType] = {}
"""Those of _TORCH that have been met, by torch's own objects: this package does not import torch."""
_SIZES = {(form, size): size for size, forms in ((1, "bB?"), (2, "hHe"), (4, "iIf"), (8, "lLqQd")) for form in forms}
"""Bytes of elements that have no Python objects in them."""
_WIDTHS: dict[Any, int] = {}
"""Bytes of the elements of tensors, by those types that have been met."""


class Buffer(NamedTuple):
    """Memory that stays where it is while `owner` lives: address, elements of `dtype`."""

    owner: object
    address: int
    elements: int
    dtype: DataType


def lanes_of(array: Any, *, writable: bool, empty: bool = False) -> Buffer:
    """A buffer of fp32, fp16, bf16 (torch, ml_dtypes, or uint16 words) or int32 elements.

    Raises:
        EndpointError: kind ``argument``: not contiguous, not on the CPU, read-only, another element type, or without
            elements (unless `empty`).
    """
    found = _places().find(array, writable)
    if found is not None:
        return found if empty else _checked(found, empty)
    if hasattr(array, _TENSOR):
        return _torch(array, _type_of_tensor(array.dtype), int(array.numel()), empty)
    pinned = _pin(array, writable)
    address, nbytes, itemsize, form = pinned.place
    return _checked(Buffer(pinned, address, nbytes // itemsize, _type_of(form, itemsize)), empty)


def bytes_of(array: Any, *, writable: bool, empty: bool = False) -> Buffer:
    """Any contiguous buffer as bytes.

    Raises:
        EndpointError: kind ``argument``: not contiguous, not on the CPU, read-only, of Python objects, conjugate only
            in its description, or without elements (unless `empty`).
    """
    found = _places_of_bytes().find(array, writable)
    if found is not None:
        owner, address, elements, width = found
        return _checked(Buffer(owner, address, elements * width, DataType.BYTES), empty)
    if hasattr(array, _TENSOR):
        width = int(array.element_size())
        if not array.is_complex():
            _WIDTHS[array.dtype] = width
        elif array.is_conj() or array.is_neg():  # which the quick way does not ask
            raise _refused("a tensor that lies there as its conjugate", "call .resolve_conj().resolve_neg() first")
        return _torch(array, DataType.BYTES, int(array.numel()) * width, empty)
    pinned = _pin(array, writable)
    address, nbytes, _, form = pinned.place
    if _has_references(form):
        raise _refused(
            f"a {type(array).__name__} of Python objects", "they are addresses in this process: give numbers or bytes"
        )
    return _checked(Buffer(pinned, address, nbytes, DataType.BYTES), empty)


@cache
def _has_references(form: str) -> bool:
    """Whether elements of a format, as of PEP 3118, are Python objects, or have some in them."""
    return "O" in re.sub(":[^:]*:", "", form)  # without the names of fields


@cache
def _type_of(form: str, itemsize: int) -> DataType:
    dtype = _FORMATS.get((form.lstrip("<=@"), itemsize))
    if dtype is None:
        raise _refused(f"elements of format {form!r}", "fp32, fp16, bf16 (as uint16) and int32 are taken")
    return dtype


def _type_of_tensor(dtype: Any) -> DataType:
    found = _TORCH.get(str(dtype))
    if found is None:
        raise _refused(f"a tensor of {dtype}", "fp32, fp16, bf16 and int32 are taken")
    _DTYPES[dtype] = found
    return found


def _torch(tensor: Any, dtype: DataType, elements: int, empty: bool) -> Buffer:
    if not tensor.is_cpu:
        raise _refused(f"a tensor on {tensor.device}", "copy it to the CPU first")
    if not tensor.is_contiguous():
        raise _refused("a tensor that is not contiguous", "call .contiguous() first")
    return _checked(Buffer(tensor, int(tensor.data_ptr()), elements, dtype), empty)


@cache
def _pinned() -> type[_native.Pinned]:
    from catchment.host import _native  # noqa: PLC0415  only when an endpoint is really used

    return _native.Pinned


@cache
def _places() -> _native.Places[Buffer]:
    from catchment.host import _native  # noqa: PLC0415  as above

    return _native.Places(Buffer, _FORMATS, _TENSOR, _DTYPES)


@cache
def _places_of_bytes() -> _native.Places[tuple[object, int, int, int]]:
    """What finds an owner, an address, the elements, and the bytes of each of them."""
    from catchment.host import _native  # noqa: PLC0415  as above

    return _native.Places(tuple, _SIZES, _TENSOR, _WIDTHS)


def _pin(array: Any, writable: bool) -> _native.Pinned:
    try:
        return _pinned()(array, writable)
    except (BufferError, TypeError, ValueError) as error:
        if getattr(getattr(array, "dtype", None), "name", "") == "bfloat16":
            return _pin(array.view("uint16"), writable)  # numpy has no buffer format for bfloat16
        wanted = "a writable contiguous CPU buffer" if writable else "a contiguous CPU buffer"
        raise _refused(f"a {type(array).__name__}: {error}", f"give {wanted}") from error


def _checked(buffer: Buffer, empty: bool) -> Buffer:
    if buffer.elements == 0 and not empty:
        raise _refused("an empty buffer", "a message has at least one element")
    return buffer


def _refused(what: str, hint: str) -> EndpointError:
    return EndpointError(f"cannot transfer {what}", kind="argument", hint=hint)


def checked_exponent(what: str, dtype: DataType, exponent: int | None) -> int:
    """The shared exponent E that numbers of a type travel with; 0 for those that have none.

    Raises:
        EndpointError: kind ``argument``: floats without one, or out of range; it begins with `what`.
    """
    if dtype in (DataType.BYTES, DataType.INT32):
        return 0
    if exponent is None or not -128 <= exponent <= 127:
        raise EndpointError(
            f"{what} of {dtype.name} with exponent {exponent}",
            kind="argument",
            hint="floats need the shared exponent E, -128..127, |x| < 2**E",
        )
    return exponent
