"""The folder where processes of one machine find each other: its sockets and files live no longer than their owner."""

from __future__ import annotations

import os
from pathlib import Path


def run_folder() -> Path:
    """The folder of sockets and state files; CATCHMENT_RUN_DIR overrides, unless it is empty."""
    return Path(os.environ.get("CATCHMENT_RUN_DIR") or "/run/catchment")
