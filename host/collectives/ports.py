"""Which way to the switch a rank takes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from host.addresses import shm_path
from host.collectives.errors import CollectiveError
from host.errors import EndpointError

ENVIRONMENT = "CATCHMENT_SHM_PORT"
"""Path of the shared-memory port of this rank; ``{rank}`` in it is replaced."""


def chosen_path(port: str, rank: int) -> str | None:
    """The shared-memory port to attach to, None for UDP.

    Args:
        port: ``auto``, ``udp`` or ``shm:PATH``.
        rank: for the template in the environment.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if port == "udp":
        return None
    if port == "auto":
        path = os.environ.get(ENVIRONMENT, "").replace("{rank}", str(rank))
        return path if path and _is_socket(Path(path)) else None
    try:
        return shm_path(port)
    except EndpointError as error:
        raise CollectiveError(
            error.message, kind="argument", hint='give "auto", "udp" or "shm:PATH", the path of the switch\'s port'
        ) from error


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
