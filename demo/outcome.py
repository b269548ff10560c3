"""What a run measured, as one JSON-able value: the report is drawn from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from catchment.json_text import json_text


@dataclass(slots=True)
class PassLosses:
    """Losses of the passes of one training, worker by worker (nats per byte), and how long each pass took (s)."""

    workers: int
    losses: dict[int, dict[int, float]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)

    def add(self, index: int, worker: int, loss: float, seconds: float) -> bool:
        """Note one worker's loss; True when that completes the pass. A pass is as slow as its slowest worker.

        A pass may run again after a loss: it was complete before then.
        """
        losses = self.losses.setdefault(index, {})
        new = worker not in losses
        losses[worker] = loss
        self.seconds[index] = max(self.seconds.get(index, 0.0), seconds)
        return new and len(losses) == self.workers

    def mean(self, index: int) -> float:
        """Mean loss of the workers in a pass."""
        losses = self.losses[index]
        return sum(losses[worker] for worker in sorted(losses)) / len(losses)

    def series(self, passes: Sequence[bool], train: bool) -> list[float]:
        """Mean losses of the training or of the validation passes that are complete, in order."""
        return [
            self.mean(index)
            for index, kind in enumerate(passes)
            if kind is train and len(self.losses.get(index, {})) == self.workers
        ]

    def missing(self, passes: int) -> list[int]:
        """Which of so many passes are not complete."""
        return [index for index in range(passes) if len(self.losses.get(index, {})) < self.workers]

    def rows(self, without: Collection[int] = ()) -> list[list[float]]:
        """Losses by pass and worker, complete passes in order, those in `without` left out."""
        return [
            [self.losses[index][worker] for worker in range(self.workers)]
            for index in sorted(self.losses)
            if len(self.losses[index]) == self.workers and index not in without
        ]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The in-network training against one in a single process; docs/explanation/demo.md says what is to be expected.

    largest_gap: of the workers' mean loss, over all passes. final_gap: in the last validation pass.
    tolerance: what largest_gap may be. equal_passes: passes out of `passes` in which every worker's loss had the bits
    of the training in one process with integer sums. equal_weights: so had the weights at the end.
    """

    largest_gap: float
    final_gap: float
    tolerance: float
    equal_passes: int
    passes: int
    equal_weights: bool

    @property
    def exact(self) -> bool:
        """The same bits in every pass and at the end."""
        return self.equal_weights and self.equal_passes == self.passes

    @property
    def holds(self) -> bool:
        """Both comparisons came out as they must."""
        return self.exact and self.largest_gap <= self.tolerance


@dataclass(frozen=True, slots=True)
class Outcome:
    """Everything about a finished run. Bytes are payload; per-step volumes are of one worker.

    stored: out of core, bytes: model states on disk, the arena, and how much of it was in use at most.
    missing: passes whose losses were lost when an earlier part of the run was ended; no list of losses has them.
    """

    options: dict[str, Any]
    parameters: int
    layers: int
    text_bytes: int
    text_files: int
    losses: list[list[float]]
    reference_losses: list[list[float]]
    comparison: Comparison | None
    digest: str
    seconds: float
    reference_seconds: float
    step_seconds: list[float]
    volumes: list[dict[str, Any]]
    worker_memory: list[dict[str, int]]
    endpoint_stats: dict[str, dict[str, Any]]
    drops: dict[str, int]
    skipped: list[dict[str, Any]]
    exponents: dict[str, list[int]]
    timeline: dict[str, list[dict[str, Any]]]
    stored: dict[str, int] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Save as JSON; a loss that is not finite is null."""
        path.write_text(json_text(asdict(self), indent=1))
