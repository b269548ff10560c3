"""Tells where the files of this installation lie: P4 programs, topologies, generated files, what was built."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
"""The folder that holds `p4src/`, `sim/`, `build/` and the others."""

NATIVE: Final = Path(os.environ.get("CATCHMENT_NATIVE_DIR", ROOT / "build" / "native"))
"""What CMake built; the environment's CATCHMENT_NATIVE_DIR names another folder."""

SHELL: Final = Path(sys.prefix) / "shell"
"""The environment of p4runtime-shell, which `make setup` makes: it needs an older protobuf than everything else."""
