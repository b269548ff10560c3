"""Whose turn it is to change the jobs of a topology without a controller: one process at a time, by a locked file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from catchment.controlplane.jobs.errors import JobError
from catchment.lock_file import take

_PAUSE_SECONDS = 0.02


@contextmanager
def turn(folder: Path, topology: str, *, patience: float) -> Iterator[None]:
    """Have the jobs of a topology to oneself: what two processes write to a switch by turns would be of neither.

    Args:
        folder: of the job file.
        topology: name of the topology.
        patience: seconds to wait for a process that has the turn.

    Raises:
        JobError: another process has it for longer, or the folder cannot be written.
    """
    path = folder / f"{topology}.turn"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise JobError(f"cannot write {path}: {error.strerror}; use sudo?") from None
    try:
        until = time.monotonic() + patience
        while not take(handle):
            if time.monotonic() >= until:
                raise JobError(
                    f"another command has been changing the jobs of {topology} for {patience:g} s; wait until it ends, "
                    f"or end it (`fuser {path}` names its process)"
                )
            time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(handle)
