"""What the orchestrator makes of the members' events while they train in the network."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from catchment.demo.network import DemoNetwork
from catchment.demo.outcome import PassLosses
from catchment.demo.progress import TrainingProgress
from catchment.sim.lab import events
from catchment.sim.training.options import Plan

_DIAGNOSIS_PAUSE = 2.0  # seconds without progress before a look at the switch, and between two looks


@dataclass(slots=True)
class TrainingListener:
    """Collects losses and skipped updates, moves the progress bar, and asks the switch when a member stalls.

    silent: members that sent nothing when one last reported a stall; empty again after any progress.
    """

    plan: Plan
    network: DemoNetwork
    progress: TrainingProgress
    losses: PassLosses
    skipped: list[dict[str, Any]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    _looked: float = 0.0
    _moved: float = field(default_factory=time.monotonic)

    def __call__(self, name: str, event: dict[str, Any]) -> None:
        """Take one event in.

        Raises:
            LabError: the switch itself is gone.
        """
        if event["event"] == events.SKIPPED:
            skipped = {"index": event["index"], "tensors": event["tensors"]}
            if skipped not in self.skipped:  # a pass that ran again after a loss
                self.skipped.append(skipped)
        elif event["event"] == events.STALLED:
            self._diagnose()
        elif event["event"] == events.PASS:
            self._passed(name, event)

    def recall(self, name: str, event: dict[str, Any]) -> None:
        """Take in an event of an earlier part of the run: what it said, not when."""
        if event["event"] == events.SKIPPED:
            self(name, event)
        elif event["event"] == events.PASS:
            self.losses.add(event["index"], self.plan.hosts[name]["wid"], event["loss"], event["seconds"])

    def _passed(self, name: str, event: dict[str, Any]) -> None:
        index = event["index"]
        complete = self.losses.add(index, self.plan.hosts[name]["wid"], event["loss"], event["seconds"])
        self._moved = time.monotonic()
        self.silent.clear()
        if complete and event["train"]:
            self.progress.step(sum(self.plan.options.passes[: index + 1]), self.losses.mean(index), event["at"])

    def _diagnose(self) -> None:
        if time.monotonic() - max(self._looked, self._moved) >= _DIAGNOSIS_PAUSE:
            self.silent = self.network.diagnosis()
            self._looked = time.monotonic()
