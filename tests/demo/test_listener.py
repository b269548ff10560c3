"""What the orchestrator does with the members' events."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from catchment.demo import LabError, TrainingOptions, listener
from catchment.demo.listener import TrainingListener
from catchment.demo.network import MemoryNetwork
from catchment.demo.outcome import PassLosses
from catchment.demo.progress import TrainingProgress
from catchment.sim.lab import events
from catchment.sim.training.options import Plan


class Asked(MemoryNetwork):
    """A network that says who is silent, or that its switch is gone."""

    answer: list[str] | LabError
    times = 0

    def diagnosis(self) -> list[str]:
        self.times += 1
        if isinstance(self.answer, LabError):
            raise self.answer
        return list(self.answer)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TrainingListener:
    monkeypatch.setattr(listener, "_DIAGNOSIS_PAUSE", 0.0)
    options = TrainingOptions(workers=2, steps=2, network="memory", output=tmp_path)
    network = Asked(options)
    network.answer = ["w1 (port 2 of switch s1) is silent after 7 packets"]
    progress = TrainingProgress(Console(file=io.StringIO()), "test", options.steps, 1e6)
    return TrainingListener(Plan(options, network.describe()), network, progress, PassLosses(2))


def _pass(index: int, train: bool, loss: float) -> dict[str, Any]:
    return {"event": events.PASS, "index": index, "train": train, "loss": loss, "seconds": 0.5, "at": 10.0 + index}


def test_losses_are_put_together_by_worker(heard: TrainingListener) -> None:
    heard("w1", _pass(0, False, 3.0))
    heard("w0", _pass(0, False, 1.0))
    heard("w0", _pass(1, True, 0.5))
    assert heard.losses.rows() == [[1.0, 3.0]]
    assert heard.losses.mean(0) == 2.0
    assert heard.losses.series((False, True), train=False) == [2.0]
    assert heard.losses.series((False, True), train=True) == []


def test_a_stall_asks_who_is_silent_and_progress_forgets_it(heard: TrainingListener) -> None:
    heard("w0", {"event": events.STALLED, "stream": "gradients", "seq": 3, "cause": "no answer"})
    assert heard.silent == ["w1 (port 2 of switch s1) is silent after 7 packets"]
    heard("w0", _pass(0, False, 1.0))
    assert heard.silent == []


def test_stalls_are_not_looked_into_all_the_time(heard: TrainingListener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_DIAGNOSIS_PAUSE", 1000.0)
    heard("w0", {"event": events.STALLED, "stream": "gradients", "seq": 3, "cause": "no answer"})
    assert isinstance(heard.network, Asked)
    assert heard.network.times == 0


def test_a_switch_that_is_gone_ends_the_run(heard: TrainingListener) -> None:
    assert isinstance(heard.network, Asked)
    heard.network.answer = LabError("switch s1 does not answer")
    with pytest.raises(LabError, match="s1 does not answer"):
        heard("w0", {"event": events.STALLED, "stream": "gradients", "seq": 3, "cause": "no answer"})


def test_skipped_updates_are_kept(heard: TrainingListener) -> None:
    heard("opt", {"event": events.SKIPPED, "index": 4, "tensors": ["head.norm.weight"]})
    assert heard.skipped == [{"index": 4, "tensors": ["head.norm.weight"]}]


def test_without_a_terminal_the_first_step_and_slow_ones_are_told() -> None:
    """A person who watches a log sees that it goes on, however long a step takes; quick ones fill no log."""
    said = io.StringIO()
    progress = TrainingProgress(Console(file=said, width=200), "train", 5000, 0)
    for number, at in ((1, 0.0), (2, 1.0), (3, 2.0), (4, 100.0), (5, 101.0), (500, 102.0)):
        progress.step(number, 1.0, at)
    assert [line.split()[2] for line in said.getvalue().splitlines()] == ["1/5000", "4/5000", "500/5000"]
