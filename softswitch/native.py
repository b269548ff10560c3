"""Finds the compiled module of the switch runtime."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Any

from catchment.checkout import NATIVE
from catchment.softswitch.errors import SwitchError

FAILED_PRECONDITION = 9


@cache
def runtime() -> Any:
    """The `_softswitch` module. CATCHMENT_NATIVE_DIR names another build directory than build/native."""
    base = NATIVE
    folder = base / "softswitch" / "runtime"
    found = sorted(folder.glob(f"_softswitch.cpython-{sys.version_info.major}{sys.version_info.minor}*.so"))
    if not found:
        raise SwitchError(FAILED_PRECONDITION, f"the switch runtime is not built ({folder}): run `make native`")
    spec = importlib.util.spec_from_file_location("_softswitch", found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
