"""Imports the foundations in C++ (foundations.cpp), which are built beside the other native parts."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from typing import Any

from catchment.checkout import NATIVE


def load() -> Any:
    """The native module `_common`."""
    folder = str(NATIVE / "tests" / "common")
    spec = importlib.machinery.PathFinder.find_spec("_common", [folder])
    assert spec is not None and spec.loader is not None, f"no _common in {folder}: run `make native`"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


common = load()
