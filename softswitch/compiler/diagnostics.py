"""What the compiler has to say about a program, and the exception that carries it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from catchment.softswitch.compiler.source import Location


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint. `severity` is "error" or "warning"; `hint` says what to do, or is empty."""

    loc: Location
    message: str
    hint: str = ""
    severity: str = "error"

    def __str__(self) -> str:
        text = f"{self.loc}: {self.severity}: {self.message}"
        return f"{text}\n    hint: {self.hint}" if self.hint else text


LONGEST_SHOWN = 1024
"""The most bits of a number that a message writes out."""


def shown(number: int) -> str:
    """The number as a message has it: in decimal, or how many bits it has. (Python writes no more than 4300 digits.)"""
    size = number.bit_length()
    return str(number) if size <= LONGEST_SHOWN else f"a{' negative' if number < 0 else ''} number of {size} bits"


class CompileError(Exception):
    """The program is refused. `diagnostics` holds at least one error, in source order as far as known."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(map(str, diagnostics)))


class Refusal(Exception):  # noqa: N818 - an internal control flow signal, never seen outside the compiler
    """One error at one place; unwinds to the nearest declaration or statement, where checking goes on."""

    def __init__(self, loc: Location, message: str, hint: str = "") -> None:
        self.diagnostic = Diagnostic(loc, message, hint)
        super().__init__(str(self.diagnostic))


class FollowUp(Refusal):
    """A consequence of an error already reported; not reported itself."""


@contextmanager
def refuse_deep(
    loc: Location, what: str = "an expression or statement is", earlier: Sequence[Diagnostic] = ()
) -> Iterator[None]:
    """Refuses what is nested too deeply inside, after the errors `earlier`: every stage goes down by recursion."""
    try:
        yield
    except RecursionError:
        raise CompileError([*earlier, Diagnostic(loc, f"{what} nested too deeply", "split it up")]) from None


@dataclass(slots=True)
class Diagnostics:
    """Collects errors and warnings, each place and message once."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    _seen: set[tuple[Location, str]] = field(default_factory=set)

    def _new(self, loc: Location, message: str) -> bool:
        if (loc, message) in self._seen:
            return False
        self._seen.add((loc, message))
        return True

    def add(self, refusal: Refusal) -> None:
        """Records an error that was raised."""
        d = refusal.diagnostic
        if not isinstance(refusal, FollowUp) and self._new(d.loc, d.message):
            self.errors.append(d)

    def error(self, loc: Location, message: str, hint: str = "") -> None:
        """Records an error and goes on."""
        self.add(Refusal(loc, message, hint))

    def warn(self, loc: Location, message: str) -> None:
        """Records a warning."""
        if self._new(loc, message):
            self.warnings.append(Diagnostic(loc, message, severity="warning"))

    def raise_if_errors(self) -> None:
        """Raises `CompileError` if anything was wrong so far."""
        if self.errors:
            raise CompileError(self.errors)
