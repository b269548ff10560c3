"""Finds the compiled module of the co-simulation."""

from __future__ import annotations

from functools import cache
from typing import Any

from catchment.native_module import native_module
from catchment.sim.cosim.errors import CosimError


@cache
def native() -> Any:
    """The `_cosim` module."""
    try:
        return native_module("sim/cosim", "_cosim")
    except FileNotFoundError as error:
        raise CosimError(f"the co-simulation {error}") from None
