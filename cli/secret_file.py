"""A file that takes a secret, of a verb that would else print it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from catchment.controlplane.jobs import JobError


@contextmanager
def secret_file(path: Path | None) -> Iterator[Callable[[str], None] | None]:
    """What writes a secret to a file that this user alone reads; None without a file.

    The file is made before anybody gives the secret, which is given once. It takes the place of a regular file only:
    a link, a pipe or a device stays as it is, and gets no secret.

    Raises:
        JobError: it cannot be made, or something else is there.
    """
    if path is None:
        yield None
        return

    def write(secret: str) -> None:
        file.write(secret)
        file.close()
        beside.replace(path)

    try:
        if there := _in_the_way(path):
            raise JobError(f"cannot write {path}: {there}")
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror}") from None
    with file:
        try:
            yield write
        finally:
            beside.unlink(missing_ok=True)


def _in_the_way(path: Path) -> str:
    """What is at a path, if a secret that is put there would replace anything but a regular file; else empty.

    Raises:
        OSError: nobody can look.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(mode):
        return f"it is a symbolic link to {path.readlink()}; give the path of the file itself"
    if stat.S_ISREG(mode):
        return ""
    what = "folder" if stat.S_ISDIR(mode) else "pipe, a socket or a device"
    return f"it is a {what}; give the path of a file, which is made or replaced"
