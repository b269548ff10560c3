"""Imports one table in C++ (tables.cpp), which is built beside the other native parts."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from typing import Any

from catchment.checkout import NATIVE


def load() -> Any:
    """The native module `_tables`."""
    folder = str(NATIVE / "tests" / "softswitch" / "runtime")
    spec = importlib.machinery.PathFinder.find_spec("_tables", [folder])
    assert spec is not None and spec.loader is not None, f"no _tables in {folder}: run `make native`"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tables = load()
