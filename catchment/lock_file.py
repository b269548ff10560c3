"""Files by which processes take turns: the kernel gives a lock back when its owner ends, whatever ended it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Have a file's lock for the length of a block; the file is made, and stays.

    Raises:
        OSError: it cannot be made.
    """
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def take(descriptor: int) -> bool:
    """Take the lock of an open file unless another process has it; whether it is taken now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
