"""Which way to the switch a rank takes."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from catchment.host.collectives.errors import CollectiveError
from catchment.host.errors import EndpointError
from catchment.host.transport.addresses import shm_path

ENVIRONMENT = "CATCHMENT_SHM_PORT"
"""Path of the shared-memory port of this rank; ``{rank}`` and ``{rail}`` in it are replaced."""


def chosen_path(port: str, rank: int, announced: str = "", rail: str | None = None) -> str | None:
    """The shared-memory port to attach to, None for UDP.

    Args:
        port: ``auto``, ``udp`` or ``shm:PATH``.
        rank: for the template in the environment.
        announced: ``shm:PATH`` if the control plane says that the switch shares memory with this host.
        rail: name of the rail where there are several: the environment counts only if it names rails, and what is
            announced counts before the switch has made it, where its folder is on this machine.

    Raises:
        CollectiveError: kind ``argument``.
    """
    if port == "udp":
        return None
    try:
        if port != "auto":
            return shm_path(port)
        template = os.environ.get(ENVIRONMENT, "")
        if rail is not None:
            template = template.replace("{rail}", rail) if "{rail}" in template else ""
        paths = [template.replace("{rank}", str(rank))]
        paths += [shm_path(announced)] if announced else []
        made = next((path for path in paths if path and is_socket(Path(path))), None)
        comes = rail is not None and announced and not Path(paths[-1]).exists() and Path(paths[-1]).parent.is_dir()
        return paths[-1] if made is None and comes else made
    except EndpointError as error:
        raise CollectiveError(
            error.message, kind="argument", hint='give "auto", "udp" or "shm:PATH", the path of the switch\'s port'
        ) from error


def is_socket(path: Path) -> bool:
    """Whether there is a socket at a path, as a switch of this machine makes one."""
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
