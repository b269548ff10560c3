"""Several optimizer nodes in one training: the bits of one, and one step that all of them go back to."""

from __future__ import annotations

import io
import os
import random
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from relay_network import RelayNetwork
from rich.console import Console

from catchment.demo import LabError, TrainingOptions, run
from catchment.demo.outcome import Outcome
from catchment.host.optimizer.store import Store
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.store.group_commit import GroupFolder
from catchment.sim.lab import events

STEPS = 8

pytestmark = pytest.mark.usefixtures("one_thread")


def _quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> tuple[TrainingOptions, Outcome]:
    options = TrainingOptions(
        workers=2, preset="tiny", steps=STEPS, batch=2, evaluate=3, lanes=64, network="memory", timeout=120.0,
        reference=False, output=tmp_path_factory.mktemp("alone"),
    )  # fmt: skip
    return options, run(options, _quiet())


@pytest.mark.parametrize(("roots", "out_of_core"), [(2, False), (3, True)])
def test_several_optimizer_nodes_have_the_bits_of_one(
    alone: tuple[TrainingOptions, Outcome], tmp_path: Path, roots: int, out_of_core: bool
) -> None:
    options = replace(alone[0], roots=roots, out_of_core=out_of_core, output=tmp_path)
    outcome = run(options, _quiet())
    assert outcome.digest == alone[1].digest
    assert outcome.losses == alone[1].losses
    assert (outcome.parameters, outcome.layers) == (alone[1].parameters, alone[1].layers)
    assert not list(tmp_path.glob("part-*"))
    if options.group_folder is not None:
        record = GroupFolder(options.group_folder).record()
        assert record is not None
        assert record.step == STEPS


class _Killing(RelayNetwork):
    """Ends an optimizer node with SIGKILL when a worker has reported pass `at`."""

    def __init__(self, options: TrainingOptions, victim: str, at: int) -> None:
        super().__init__(options)
        self._victim, self._at = victim, at

    def start(self, host: str, plan: Any, deliver: Any) -> Any:
        def watched(name: str, event: dict[str, Any]) -> None:
            deliver(name, event)
            if event["event"] == events.PASS and event["index"] == self._at and self._at >= 0:
                self._at = -1
                os.kill(self.members[self._victim].pid, signal.SIGKILL)

        return super().start(host, plan, watched)


@pytest.mark.sampled(4)
def test_after_a_kill_of_one_all_go_back_to_one_step_and_on_to_the_same_bits(
    alone: tuple[TrainingOptions, Outcome], tmp_path: Path, rng: random.Random
) -> None:
    options = replace(alone[0], roots=2, out_of_core=True, network="mininet", evaluate=2, output=tmp_path)
    whole = run(replace(options, network="memory", out_of_core=False, output=tmp_path / "whole"), _quiet())
    assert whole.digest == alone[1].digest
    victim = rng.choice(options.root_names)
    with pytest.raises(LabError, match=rf"{victim}: process \d+ was ended by SIGKILL.*--resume"):
        # Passes 0 to 8: no gradient, steps 1 and 2, a validation, steps 3 and 4, a validation, steps 5 and 6.
        # Workers that report pass 5 had the parameters of step 3, before which all nodes had committed step 2.
        run(options, _quiet(), network=lambda chosen: _Killing(chosen, victim, rng.randrange(5, 8)))
    outcome = run(replace(options, resume=True), _quiet(), network=RelayNetwork)
    assert outcome.options["trained"] in (2, 4, 6)
    assert outcome.digest == whole.digest
    assert outcome.losses == [row for index, row in enumerate(whole.losses) if index not in outcome.missing]
    for root in range(2):
        with Store.open(options.store_places(root)) as store:
            assert store.state.trained == STEPS
            assert check(store) == []
