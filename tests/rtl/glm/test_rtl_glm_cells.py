"""The netlist of a whole worker of P4SGD in the place of its sources, under tests of the sources."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from glm_case import Case, assert_equal
from netlists import netlist

from catchment.host.glm.numbers import Loss
from catchment.rtl.harness import glm_worker
from catchment.rtl.harness.glm_worker import Build
from catchment.rtl.harness.library import RtlLibrary, load
from catchment.rtl.synth import Target
from catchment.sim.cosim.glm.network import model_switch
from catchment.sim.world.star import Hops

SMALLEST = Build(engines=1, model_rows=64, replay_words=64, buffer_words=32, slots=8)
"""An engine for 1024 weights, and as few rounds in flight as the trainings have."""

# To synthesize it and to compile its netlist takes many minutes of a processor, once.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def _of_cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The harness loads what synthesis makes of its top."""

    def load_cells(top: str, bench: Path, parameters: Mapping[str, int]) -> RtlLibrary:
        return load(top, bench, parameters, instead=netlist(Target("", top, dict(parameters))))

    kept = glm_worker._library
    monkeypatch.setattr(glm_worker, "load", load_cells)
    kept.cache_clear()
    yield
    kept.cache_clear()


def test_workers_train(rng: random.Random) -> None:
    """Two workers of cells alone, a training of each loss: frames are lost, doubled, overtaken, and memory stalls."""
    hops = Hops.with_stragglers(hop=50, loss=0.1, duplicate=0.1, tail=10)
    for loss in Loss:
        case = Case(rng, rng.randrange(1, 17), loss, workers=2, features=250)
        found = case.in_hardware(SMALLEST, hops=hops, base_seq=2**32 - 3, stall=40, tx_stall=40, switch=model_switch)
        assert_equal(case, found[0])
        assert all(c.begun == c.sums == c.confirmed == len(case.rows) for c in found[1])
