"""Tells where the files of this installation lie: P4 programs, topologies, generated files, what was built."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent

INSTALLED: Final = (_PACKAGE / "p4src").is_dir()
"""Whether this is a package that pip has installed, and not a checkout."""

ROOT: Final = _PACKAGE if INSTALLED else _PACKAGE.parent
"""The folder that holds `p4src/`, `sim/`, `build/` and the others; installed, only what runs."""


def _may_write() -> bool:
    build = ROOT / "build"
    return os.access(next(path for path in (build / "programs", build, ROOT) if path.exists()), os.W_OK)


OTHERS: Final = INSTALLED or not _may_write()
"""Whether what is built here is somebody else's: of an installed package, or of a checkout that root has set up."""


def build_folder() -> Path:
    """Give the folder of compiled programs; CATCHMENT_BUILD_DIR, asked for at each call, names another.

    It is the user's own where the installation is somebody else's.
    """
    if given := os.environ.get("CATCHMENT_BUILD_DIR"):
        return Path(given)
    if OTHERS:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "catchment"
    return ROOT / "build"


NATIVE: Final = Path(os.environ.get("CATCHMENT_NATIVE_DIR") or ROOT / "build" / "native")
"""What CMake built; the environment's CATCHMENT_NATIVE_DIR names another folder, and none where it is empty: programs
are loaded from here, and an empty path would be whatever folder this process happens to be in."""

SHELL: Final = Path(sys.prefix) / "shell"
"""The environment of p4runtime-shell, which `make setup` makes: it needs an older protobuf than everything else."""
