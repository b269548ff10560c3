"""A demo out of core that was killed goes on from its store, to the bits of the one that nobody killed."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from relay_network import RelayNetwork
from rich.console import Console

from catchment.checkout import ROOT
from catchment.demo import LabError, TrainingOptions, run
from catchment.demo.outcome import Outcome
from catchment.demo.resume import Journal, going_on
from catchment.host.optimizer.store import Store
from catchment.host.optimizer.store.check import check
from catchment.sim.lab import events
from catchment.sim.lab.members import member_environment

STEPS = 8


pytestmark = pytest.mark.usefixtures("one_thread")


def _quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[TrainingOptions, Outcome]:
    options = TrainingOptions(
        workers=2,
        preset="tiny",
        steps=STEPS,
        batch=2,
        evaluate=3,
        lanes=64,
        network="memory",
        timeout=120.0,
        output=tmp_path_factory.mktemp("whole"),
    )
    return options, run(options, _quiet())


class _Killing(RelayNetwork):
    """Ends the optimizer node with SIGKILL when a worker has reported pass `at`."""

    def __init__(self, options: TrainingOptions, at: int) -> None:
        super().__init__(options)
        self._at = at

    def start(self, host: str, plan: Any, deliver: Any) -> Any:
        def watched(name: str, event: dict[str, Any]) -> None:
            deliver(name, event)
            if event["event"] == events.PASS and event["index"] == self._at and self._at >= 0:
                self._at = -1
                os.kill(self.members["opt"].pid, signal.SIGKILL)

        return super().start(host, plan, watched)


@pytest.mark.sampled(4)
def test_after_a_kill_of_the_optimizer_node_it_goes_on_to_the_same_bits(
    whole: tuple[TrainingOptions, Outcome], tmp_path: Path, rng: random.Random
) -> None:
    options = replace(whole[0], out_of_core=True, network="mininet", output=tmp_path)
    with pytest.raises(LabError, match=r"opt: process \d+ was ended by SIGKILL.*--resume"):
        # From pass 3 on the first step is in the store; and enough passes are left for a signal that comes late.
        run(options, _quiet(), network=lambda chosen: _Killing(chosen, rng.randrange(3, 5)))
    with Store.open(options.store_places()) as store:
        assert check(store) == []
        trained = store.state.trained
    assert 0 < trained < STEPS
    outcome = run(replace(options, resume=True), _quiet(), network=RelayNetwork)
    assert outcome.options["trained"] == trained
    assert outcome.digest == whole[1].digest
    rows = [row for index, row in enumerate(whole[1].losses) if index not in outcome.missing]
    assert outcome.losses == rows
    assert len(outcome.missing) <= 1
    assert outcome.comparison is not None
    assert outcome.comparison.exact
    with Store.open(options.store_places()) as store:
        assert store.state.trained == STEPS


def _kill_whole(options: TrainingOptions, at: int) -> bool:
    """Run the command until it reports a step beyond `at` (or to its end, -1); True when it was killed."""
    values = options.to_json()
    command = [sys.executable, "-m", "catchment.demo", "--network", "memory", "--out-of-core", "--no-reference"]
    for name in ("workers", "preset", "steps", "batch", "evaluate", "lanes", "output"):
        command += [f"--{name}", str(values[name])]
    command += ["--resume"] if options.resume else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=member_environment(), cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("in the network: step ") and 0 <= at <= int(line.split("/")[0].split()[-1]):
                process.kill()
        code = process.wait(120)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def _killed_whole(options: TrainingOptions, kills: list[int], digest: str) -> None:
    for _ in range(10):  # on a busy machine it may be done before it is killed: from the beginning, then
        tries = (_kill_whole(replace(options, resume=number > 0), at) for number, at in enumerate(kills))
        if all(killed or at >= STEPS - 1 for killed, at in zip(tries, kills, strict=True)):
            break
    else:
        pytest.fail("it was always done before it was killed")
    assert not _kill_whole(replace(options, resume=True), -1)
    report = json.loads((options.output / "report.json").read_text())
    assert report["digest"] == digest
    with Store.open(options.store_places()) as store:
        assert check(store) == []


@pytest.mark.sampled(4)
def test_after_a_kill_of_everything_it_goes_on_to_the_same_bits(
    whole: tuple[TrainingOptions, Outcome], tmp_path: Path, rng: random.Random
) -> None:
    _killed_whole(replace(whole[0], output=tmp_path), [rng.randrange(1, STEPS - 2)], whole[1].digest)


@pytest.mark.slow
@pytest.mark.parametrize("_round", range(4))
def test_killed_again_and_again(
    whole: tuple[TrainingOptions, Outcome], tmp_path: Path, rng: random.Random, _round: int
) -> None:
    kills = sorted(rng.choices(range(1, STEPS), k=4))
    _killed_whole(replace(whole[0], output=tmp_path), kills, whole[1].digest)


@pytest.mark.sampled(4)
def test_a_run_that_was_done_stays_as_it_is(whole: tuple[TrainingOptions, Outcome], tmp_path: Path) -> None:
    options = replace(whole[0], out_of_core=True, output=tmp_path, reference=False)
    first = run(options, _quiet())
    again = run(replace(options, resume=True), _quiet())
    assert (again.digest, again.losses, again.missing) == (first.digest, first.losses, [])


def test_it_says_why_it_cannot_go_on(whole: tuple[TrainingOptions, Outcome], tmp_path: Path) -> None:
    options = replace(whole[0], out_of_core=True, output=tmp_path / "none", resume=True)
    with pytest.raises(LabError, match="--out-of-core: give both"):
        going_on(replace(options, out_of_core=False))
    with pytest.raises(LabError, match="has no run to go on with"):
        going_on(options)
    short = replace(options, output=tmp_path, steps=1, reference=False)
    run(replace(short, resume=False), _quiet())
    with pytest.raises(LabError, match="had steps 1, not 8"):
        going_on(replace(options, output=tmp_path))
    assert going_on(short).trained == 1
    short.store_places()[1].unlink()
    with pytest.raises(LabError, match=r"cannot go on: .*optimizer-1\.store: .*no such file"):
        going_on(short)


def test_a_journal_forgets_what_runs_again_and_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "passes.jsonl"
    sent = [("w0", {"event": events.PASS, "index": index, "loss": index / 3}) for index in range(4)]
    with Journal(path) as journal:
        for name, event in sent:
            journal.note(name, event)
        journal.note("w0", {"event": events.STALLED})
    with path.open("a") as file:
        file.write('["w0", {"eve')
    heard: list[Any] = []
    Journal(path).replay(3, lambda name, event: heard.append((name, event)))
    assert heard == sent[:3]
    Journal(path).replay(0, lambda name, event: heard.append((name, event)))
    assert heard == sent[:3]
    assert path.read_text() == ""


def test_a_journal_that_cannot_be_written_anew_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has is nowhere else: a full disk, or the end of the process, in the middle of that takes nothing."""
    path = tmp_path / "passes.jsonl"
    with Journal(path) as journal:
        for index in range(4):
            journal.note("w0", {"event": events.PASS, "index": index})
    before = path.read_bytes()

    def half(self: Path, text: str, *_: Any) -> int:
        with self.open("w", encoding="utf-8") as file:
            file.write(text[: len(text) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as context:
        context.setattr(Path, "write_text", half)
        with pytest.raises(OSError, match="No space"):
            Journal(path).replay(3, lambda *_: None)
    assert path.read_bytes() == before
