"""Finds the compiled module of the co-simulation."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Any

from catchment.checkout import NATIVE
from catchment.sim.cosim.errors import CosimError


@cache
def native() -> Any:
    """The `_cosim` module. CATCHMENT_NATIVE_DIR names another build directory than build/native."""
    base = NATIVE
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
