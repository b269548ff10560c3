"""Files that are there whole, or as they were before, whenever the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Replace a file by one with these bytes, all at once and for good.

    Raises:
        OSError: it cannot be written; the old file stands.
    """
    fresh = path.with_name(f"{path.name}.new")
    with fresh.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
