"""The one exception of generalized linear models."""

from __future__ import annotations


class GlmError(RuntimeError):
    """A file, an option or a training is refused, or failed.

    Attributes:
        message: what is wrong, and where.
        hint: what to do about it.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}: {hint}" if hint else message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[type[GlmError], tuple[str, str]]:
        return GlmError, (self.message, self.hint)
