"""Places of files that verbs write: refused before the work whose outcome goes there, and named where writing fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catchment.controlplane.errors import ControlPlaneError


def check_file(option: str, path: Path) -> None:
    """See that a file can be written; nothing is made or changed.

    Args:
        option: that names it, for the error.

    Raises:
        ControlPlaneError: its folder is not there, it is a folder, or it may not be written.
    """
    folder = path.absolute().parent
    try:
        if not folder.is_dir():
            raise ControlPlaneError(f"cannot write {option} {path}: there is no folder {folder}; make it first")
        if path.is_dir():
            raise ControlPlaneError(f"cannot write {option} {path}: it is a folder; give the path of a file")
        _check_permission(option, path, path if path.exists() else folder)
    except OSError as error:
        raise ControlPlaneError(f"cannot write {option} {path}: {error.strerror}") from None


def check_folder(option: str, path: Path) -> None:
    """See that files can be written in a folder, which may have to be made, with those above it.

    Raises:
        ControlPlaneError: they cannot, as something on its way is no folder or may not be written.
    """
    try:
        there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
        if not there.is_dir():
            raise ControlPlaneError(f"cannot write {option} {path}: {there} is no folder; give another path")
        _check_permission(option, path, there)
    except OSError as error:
        raise ControlPlaneError(f"cannot write {option} {path}: {error.strerror}") from None


def check_apart(*named: tuple[str, Path | None]) -> None:
    """See that no two options name the same file, of which one would be written over the other.

    Args:
        named: options or arguments, and the paths that they name; a device, as /dev/null, may be named twice.

    Raises:
        ControlPlaneError: two do.
    """
    seen: dict[str, str] = {}
    for option, path in named:
        if path is None:
            continue
        real = os.path.realpath(path)
        # Path's own raise OSError where the path is too long for a name: check_file() says so.
        if os.path.exists(real) and not os.path.isfile(real):  # noqa: PTH110, PTH113
            continue
        if real in seen:
            raise ControlPlaneError(f"{seen[real]} and {option} are both {path}: give each a file of its own")
        seen[real] = option


@contextmanager
def writing(path: Path | None) -> Iterator[None]:
    """Say what could not be written in a block.

    Args:
        path: what is written there, for an error that names no file, as that of a full disk.

    Raises:
        ControlPlaneError: something could not.
    """
    try:
        yield
    except OSError as error:
        raise ControlPlaneError(f"cannot write {error.filename or path}: {error.strerror or error}") from error


def _check_permission(option: str, path: Path, there: Path) -> None:
    if not os.access(there, os.W_OK):
        who = "it" if there == path else str(there)
        raise ControlPlaneError(f"cannot write {option} {path}: {who} may not be written; give another path")
