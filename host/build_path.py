"""Finds the native modules: in build/native/host, or in the directory that CATCHMENT_NATIVE_DIR names."""

from __future__ import annotations

import importlib.abc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from catchment.checkout import NATIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

NATIVE_MODULES = (
    "catchment.host._native",
    "catchment.host._collectives",
    "catchment.host._optimizer",
    "catchment.host._glm",
    "catchment.host._torch_group",
)


def directory() -> Path:
    """The directory that holds ``_native*.so`` once it is built."""
    return NATIVE / "host"


def extended(path: Iterable[str]) -> list[str]:
    """The package's search path with the build directory added, and a clear error when nothing was built."""
    if not any(isinstance(finder, _NotBuilt) for finder in sys.meta_path):
        sys.meta_path.append(_NotBuilt())
    return [*path, str(directory())]


class _NotBuilt(importlib.abc.MetaPathFinder):
    """Asked last, so only when the module was found nowhere."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name in NATIVE_MODULES:
            raise ImportError(
                f"the native part {name} is not built ({directory()} has none): run `make setup`", name=name
            )
