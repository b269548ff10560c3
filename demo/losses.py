"""A host that is killed on purpose and started again, and what the others do meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from catchment.sim.lab import events
from catchment.sim.training.options import TrainingOptions


class Losses:
    """Takes every event of a run."""

    def __init__(self, options: TrainingOptions, console: Console, restart: Callable[[str], None]) -> None:
        """`restart(host)` kills the host's process, and starts it again when it has ended."""
        self._options, self._console, self._restart = options, console, restart
        self._victim = options.restarted
        self._said: set[str] = set()

    def __call__(self, _name: str, event: dict[str, Any]) -> None:
        """Kill when it is time; say for whom the others wait, and from which step they go on."""
        match event["event"]:
            case events.PASS:
                self._passed(event)
            case events.WAITING:
                self._say(f"all others wait: {event['text'].partition(';')[0]}")
            case events.REJOINED:
                self._say(f"all go on from step {event['trained']}, which all optimizer nodes have on disk")

    def _passed(self, event: dict[str, Any]) -> None:
        if self._victim is None or not event["train"]:
            return
        host, step = self._victim
        if sum(self._options.passes[: event["index"] + 1]) == step:
            self._victim = None
            self._console.print(f"step {step}: {host} is killed, and started again")
            self._restart(host)

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._console.print(text, soft_wrap=True, highlight=False)
