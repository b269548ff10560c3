"""Ways out of the middle of a program."""

from __future__ import annotations

from catchment.softswitch.compiler.source import Location
from catchment.softswitch.interpreter.values import Value


class Signal(Exception):  # noqa: N818 - none of these is an error
    """Any of them."""


class ReturnSignal(Signal):
    """`return`."""

    def __init__(self, value: Value | None) -> None:
        super().__init__()
        self.value = value


class ExitSignal(Signal):
    """`exit`: ends the top-level control."""


class BreakSignal(Signal):
    """`break`."""


class ContinueSignal(Signal):
    """`continue`."""


class StepLimitSignal(Signal):
    """The packet's loops took more rounds than it may. `where` is the loop's place."""

    def __init__(self, where: Location) -> None:
        super().__init__(str(where))
        self.where = where


class RejectSignal(Signal):
    """The parser rejects the packet. `error` is the error's name."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error
