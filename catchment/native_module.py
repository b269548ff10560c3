"""Loads the extension modules that CMake leaves in the build folder, for which there is no package to install."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from catchment.checkout import INSTALLED, NATIVE


def native_module(folder: str, name: str) -> ModuleType:
    """Load the module `name` that was built in `folder`, below the native build (see `checkout.NATIVE`).

    Raises:
        FileNotFoundError: it is not built, or no part of an installed package; says where it was looked for and what
            builds it.
    """
    built = NATIVE / folder
    found = sorted(built.glob(f"{name}.cpython-{sys.version_info.major}{sys.version_info.minor}*.so"))
    if not found:
        if INSTALLED:
            raise FileNotFoundError(f"is not in this package ({built}): take a checkout, and run `make native` there")
        raise FileNotFoundError(f"is not built ({built}): run `make native`")
    spec = importlib.util.spec_from_file_location(name, found[0])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
