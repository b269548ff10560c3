"""What a person sees while the demo runs."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# Without a terminal: the first step, so many more per training, and one when there was none for so long.
_LINES = 10
_SILENCE_SECONDS = 30.0


class TrainingProgress:
    """A bar with loss and throughput on a terminal; a line now and then where there is none."""

    def __init__(self, console: Console, title: str, steps: int, bytes_per_step: float) -> None:
        """`bytes_per_step`: payload that all workers together send and receive in one step, 0 for none."""
        self._console = console
        self._title = title
        self._steps = steps
        self._bytes = bytes_per_step
        self._first: tuple[int, float] | None = None  # the first step seen, and when it ended
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._printed_at = 0.0
        self._task = self._progress.add_task(title, total=steps, facts="starting")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def step(self, number: int, loss: float, at: float) -> None:
        """Training step `number` (from 1) ended with `loss` at time `at` (seconds, monotonic)."""
        if self._first is None:
            self._first = number, at
        before, began = self._first
        rate = (number - before) / max(at - began, 1e-9)
        facts = f"loss {loss:.4f}  {rate:.2f} steps/s"
        if self._bytes:
            facts += f"  {rate * self._bytes / 1e6:.1f} MB/s"
        self._progress.update(self._task, completed=number, facts=facts)
        due = (
            number == before or number % max(1, self._steps // _LINES) == 0 or at - self._printed_at > _SILENCE_SECONDS
        )
        if not self._console.is_terminal and due:
            self._printed_at = at
            self._console.print(f"{self._title}: step {number}/{self._steps}  {facts}")
