"""The back end: IR to C++ for the switch runtime."""

from catchment.softswitch.compiler.backend.program import generate

__all__ = ["generate"]
