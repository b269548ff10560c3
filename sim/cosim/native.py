"""Finds the compiled module of the co-simulation."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from sim.cosim.errors import CosimError

_ROOT = Path(__file__).resolve().parents[2]


@cache
def native() -> Any:
    """The `_cosim` module. CATCHMENT_NATIVE_DIR names another build directory than build/native."""
    base = Path(os.environ.get("CATCHMENT_NATIVE_DIR", _ROOT / "build" / "native"))
    folder = base / "sim" / "cosim"
    found = sorted(folder.glob(f"_cosim.cpython-{sys.version_info.major}{sys.version_info.minor}*.so"))
    if not found:
        raise CosimError(f"the co-simulation is not built ({folder}): run `make native`")
    spec = importlib.util.spec_from_file_location("_cosim", found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
