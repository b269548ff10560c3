"""Names that a package exports and imports only at their first use, so that importing the package costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def lazy_exports(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of `package`, which imports an exported name from the module below it that `homes` gives."""

    def __getattr__(name: str) -> Any:  # noqa: N807  a module's own hook
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return __getattr__
