"""Imports one table and stores in C++ (tables.cpp, stores.cpp), which are built beside the other native parts."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from itertools import count
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


def every_end(work: Callable[[int], bool], is_as_before: Callable[[], None]) -> int:
    """Let memory end at each allocation of some work in turn, and look whether all is as before; how many there are."""
    for allocations in count():
        if work(allocations):
            return allocations
        is_as_before()
    raise AssertionError
