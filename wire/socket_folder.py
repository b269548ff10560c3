"""Temporary folders for Unix sockets, whose paths the kernel keeps short."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

LONGEST_SOCKET_PATH = 107
"""Bytes of a Unix socket's path at most, without the zero behind it (`sun_path` of unix(7))."""

_SHORT = Path("/tmp")
_NAME = 40  # bytes for the names of folder and socket


def place_for_sockets(prefix: str = "") -> Path:
    """The folder in which one of this name can be made whose sockets have paths that the kernel takes.

    It is where temporary files go (`TMPDIR`), or `/tmp` where that name leaves too little room.
    """
    usual = Path(tempfile.gettempdir())
    return usual if len(os.fsencode(usual)) + len(prefix) + _NAME <= LONGEST_SOCKET_PATH else _SHORT


def socket_folder(prefix: str = "catchment-") -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of this user, to be used as a context manager, in which sockets can be made."""
    return tempfile.TemporaryDirectory(prefix=prefix, dir=place_for_sockets(prefix))
