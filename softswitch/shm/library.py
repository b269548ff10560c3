"""The C library, loaded once: catchment_shm.h as ctypes."""

from __future__ import annotations

import ctypes
from functools import cache

from catchment.checkout import NATIVE
from catchment.softswitch.shm.errors import ShmError

_ABI = 1
_LIBRARY = NATIVE / "softswitch" / "shm" / "libcatchment_shm.so"

TIMEOUT, DETACHED, REFUSED, CORRUPT, ARGUMENT, SYSTEM = range(-1, -7, -1)
FRAMES, ROOM = 1, 2


class Frame(ctypes.Structure):
    """catchment_shm_frame."""

    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_uint32), ("room", ctypes.c_uint32))


class RawInfo(ctypes.Structure):
    """catchment_shm_info."""

    _fields_ = (
        ("cells", ctypes.c_uint32),
        ("frame_bytes", ctypes.c_uint32),
        ("epoch", ctypes.c_uint64),
        ("attachments", ctypes.c_uint64),
        ("sent", ctypes.c_uint64),
        ("received", ctypes.c_uint64),
        ("too_long", ctypes.c_uint64),
        ("switch_pid", ctypes.c_int32),
        ("attached", ctypes.c_int32),
    )


@cache
def library() -> ctypes.CDLL:
    """The loaded library.

    Raises:
        ShmError: it is not built, or built from another version of the header.
    """
    try:
        loaded = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        raise ShmError(f"{_LIBRARY} cannot be loaded ({error}): run `make native`") from error
    handle, frames = ctypes.c_void_p, ctypes.POINTER(Frame)
    signatures = {
        "abi": ([], ctypes.c_int),
        "attach": (
            [ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.c_char_p, ctypes.c_size_t],
            handle,
        ),
        "detach": ([handle], None),
        "send": ([handle, frames, ctypes.c_int], ctypes.c_int),
        "receive": ([handle, frames, ctypes.c_int], ctypes.c_int),
        "wait": ([handle, ctypes.c_int, ctypes.c_int64], ctypes.c_int),
        "descriptor": ([handle], ctypes.c_int),
        "arm": ([handle, ctypes.c_int], ctypes.c_int),
        "check": ([handle], ctypes.c_int),
        "error": ([handle], ctypes.c_char_p),
        "get_info": ([handle, ctypes.POINTER(RawInfo)], None),
    }
    for name, (arguments, result) in signatures.items():
        function = getattr(loaded, f"catchment_shm_{name}")
        function.argtypes, function.restype = arguments, result
    if (found := loaded.catchment_shm_abi()) != _ABI:
        raise ShmError(f"{_LIBRARY} has ABI {found}, this package needs {_ABI}: run `make native`")
    return loaded
