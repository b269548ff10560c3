"""The one exception of the switch's runtime and its in-process API."""

from __future__ import annotations


class SwitchError(Exception):
    """The switch refused something. `code` is google.rpc.Code's number, the message says what and why."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
