"""The back end: IR to C++ for the switch runtime."""

from softswitch.compiler.backend.program import generate

__all__ = ["generate"]
