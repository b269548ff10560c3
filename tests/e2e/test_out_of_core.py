"""The optimizer node out of core behind a real switch: a model far larger than its memory, and the same bits."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from shapes import LANES

from catchment.controlplane.topology import Target
from catchment.demo import TrainingOptions, run
from catchment.host.optimizer.store import Store
from catchment.host.optimizer.store.check import check

ARENA = 600_000


# In memory the workers are threads of this process; elsewhere each has one.
pytestmark = pytest.mark.usefixtures("one_thread")


def _quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.mark.sampled(4)
def test_a_model_ten_times_the_arena_has_the_bits_that_it_has_in_memory(target: Target, tmp_path: Path) -> None:
    # BMv2 is a hundred times slower: there the model is small and the arena what it needs at least
    preset, arena = ("deep", ARENA) if target is Target.EMBEDDED else ("tiny", 0)
    options = TrainingOptions(
        workers=2, preset=preset, steps=3, batch=2, evaluate=2, lanes=LANES[target], slots=8, target=str(target),
        reference=False, timeout=60.0, out_of_core=True, arena=arena, output=tmp_path / "disk",
        name=f"e2e-disk-{os.getpid()}",
    )  # fmt: skip
    outcome = run(options, _quiet())
    in_memory = replace(options, out_of_core=False, network="memory", output=tmp_path / "memory")
    assert outcome.digest == run(in_memory, _quiet()).digest
    if preset == "deep":
        assert outcome.stored["states"] > 10 * outcome.stored["arena"]
    assert 0 < outcome.stored["peak"] <= outcome.stored["arena"]
    with Store.open(options.store_places()) as store:
        assert store.state.trained == options.steps
        assert check(store) == []
