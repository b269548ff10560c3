"""Operations as a program in C calls them: what Python has its own way for (`host._collectives`), by ctypes."""

from __future__ import annotations

import ctypes
from functools import cache

from catchment.host.collectives.library import library


class Call(ctypes.Structure):
    """catchment_call."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("reduction", ctypes.c_int32),
        ("type", ctypes.c_int32),
        ("scaling", ctypes.c_int32),
        ("exponent", ctypes.c_int32),
        ("root", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("tag", ctypes.c_uint32),
        ("elements", ctypes.c_uint64),
        ("source", ctypes.c_void_p),
        ("target", ctypes.c_void_p),
        ("timeout_ns", ctypes.c_int64),
        ("step", ctypes.c_uint64),
        ("block", ctypes.c_uint64),
        ("blocks", ctypes.c_uint64),
        ("stride", ctypes.c_uint64),
        ("packed", ctypes.c_int32),
    )


@cache
def c_caller() -> ctypes.CDLL:
    """The library with these functions made known too."""
    loaded = library()
    handle = ctypes.c_void_p
    for name, arguments, result in (
        ("group_start", [handle, ctypes.POINTER(Call)], handle),
        ("work_wait", [handle, ctypes.c_int64], ctypes.c_int),
        ("work_done", [handle], ctypes.c_int),
        ("work_free", [handle], None),
    ):
        function = getattr(loaded, f"catchment_{name}")
        function.argtypes, function.restype = arguments, result
    return loaded
