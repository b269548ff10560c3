"""Finds the compiled module of the switch runtime."""

from __future__ import annotations

from functools import cache
from typing import Any

from catchment.native_module import native_module
from catchment.softswitch.errors import SwitchError

FAILED_PRECONDITION = 9


@cache
def runtime() -> Any:
    """The `_softswitch` module."""
    try:
        return native_module("softswitch/runtime", "_softswitch")
    except FileNotFoundError as error:
        raise SwitchError(FAILED_PRECONDITION, f"the switch runtime {error}") from None
