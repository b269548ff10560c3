"""Temporary folders for Unix sockets, whose paths the kernel keeps short.

Who makes such a folder holds a lock on it, which ends with the process.  So a folder that a killed process has left is
known by its lock, which anybody can take, and the next one that is made removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST_SOCKET_PATH = 107
"""Bytes of a Unix socket's path at most, without the zero behind it (`sun_path` of unix(7))."""

_SHORT = Path("/tmp")
_NAME = 40  # bytes for the names of folder and socket
_PREFIX = "catchment-run-"
_OURS = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")  # as `tempfile` makes names
_LEAST_AGE = 60.0  # seconds: a folder that is being made has no lock yet


def place_for_sockets(prefix: str = "") -> Path:
    """The folder in which one of this name can be made whose sockets have paths that the kernel takes.

    It is where temporary files go (`TMPDIR`), or `/tmp` where that name leaves too little room.
    """
    usual = Path(tempfile.gettempdir())
    return usual if len(os.fsencode(usual)) + len(prefix) + _NAME <= LONGEST_SOCKET_PATH else _SHORT


@contextmanager
def socket_folder() -> Iterator[str]:
    """A temporary folder of this user in which sockets can be made; it is removed at the end, with what is in it."""
    place = place_for_sockets(_PREFIX)
    _remove_abandoned(place)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as folder:
        held = _open(Path(folder))
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(held)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _remove_abandoned(place: Path) -> None:
    """Remove this user's folders of killed processes; one with other files than sockets stays as it is."""
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if _OURS.fullmatch(entry.name):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    held = _open(folder)
    try:
        status = os.fstat(held)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < _LEAST_AGE:
            return
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        files = list(folder.iterdir())
        if all(stat.S_ISSOCK(file.lstat().st_mode) for file in files):
            for file in files:
                file.unlink()
            folder.rmdir()
    finally:
        os.close(held)
