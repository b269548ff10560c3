"""The logs of networks in the background: what an owner says is read until the network is ended, and goes with it."""

from __future__ import annotations

import os
from pathlib import Path

from catchment.wire.run_folder import run_folder


def log_of(network: str) -> Path:
    """The log of the network that was started last in the background under this name."""
    return run_folder() / f"{network}.log"


def log_of_start(network: str) -> Path:
    """The log of a start by this process; another owner of the name may be at work, whose log stays."""
    return run_folder() / f"{network}.log.{os.getpid()}"


def take_logs(network: str) -> dict[Path, str]:
    """Remove the logs of a network that is down, and of starts that came to nothing.

    Returns:
        Log -> why the owner ended, if it says so; else its last line.
    """
    logs = [log_of(network), *(path for path in run_folder().glob("*") if _is_of_dead_start(path, network))]
    said = {path: path.read_text("utf-8", errors="replace").splitlines() for path in logs if path.is_file()}
    for path in said:
        path.unlink()
    return {path: _telling(lines) for path, lines in said.items()}


def _telling(lines: list[str]) -> str:
    complaints = [line for line in lines if line.startswith("catchment: ")]
    return (complaints or lines or ["nothing"])[-1]


def _is_of_dead_start(path: Path, network: str) -> bool:
    """Whether a file is the log of a start whose process is gone."""
    name, _, process = path.name.rpartition(".")
    return name == f"{network}.log" and process.isdecimal() and not Path(f"/proc/{process}").exists()
