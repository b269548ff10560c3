"""The budget of loop rounds that a frame may take, with all of its copies and passes."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.softswitch.compiler.loop_rounds import Loop, counted_in
from catchment.softswitch.compiler.source import Location
from catchment.softswitch.interpreter.signals import StepLimitSignal

DROP_CAUSE = "too many loop steps"
LOG_INTERVAL_US = 1_000_000


@dataclass(slots=True)
class StepBudget:
    """Counts the rounds of loops whose rounds the packet decides, as the compiled switch does."""

    limit: int
    left: int = 0
    _counted: dict[int, bool] = field(default_factory=dict)
    """Id of a loop, which the program keeps -> whether it is counted."""
    _told_us: int | None = None
    _untold: int = 0

    def start(self) -> None:
        """Begins a frame."""
        self.left = self.limit

    def take(self, loop: Loop) -> None:
        """Takes a round.

        Raises:
            StepLimitSignal: none is left.
        """
        counted = self._counted.get(id(loop))
        if counted is None:
            self._counted |= counted_in(loop)
            counted = self._counted[id(loop)]
        if not counted:
            return
        if self.left == 0:
            raise StepLimitSignal(loop.loc)
        self.left -= 1

    def report(self, port: int, where: Location, now_us: int) -> str | None:
        """The line to log for a frame that was dropped; None if one was logged within a second."""
        self._untold += 1
        if self._told_us is not None and now_us - self._told_us < LOG_INTERVAL_US:
            return None
        text = f"{where}: a frame from port {port} was dropped: its loops took more than {self.limit} steps"
        if self._untold > 1:
            text += f" (so were {self._untold - 1} more since the last line)"
        self._told_us, self._untold = now_us, 0
        return text
