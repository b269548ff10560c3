"""The netlists of whole tops in the place of their sources, under the tests of the sources."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import test_rtl_nic
from netlists import netlist
from test_rtl_sync_node import check_ring

from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness import sync_ring, verilated_nic
from catchment.rtl.harness.library import RtlLibrary, load
from catchment.rtl.synth import Target

# To synthesize a top and to compile its netlist takes minutes of a processor, once.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(autouse=True)
def _of_cells(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Harnesses load what synthesis makes of their tops."""

    def load_cells(top: str, bench: Path, parameters: Mapping[str, int], *, waves: bool = False) -> RtlLibrary:
        return load(top, bench, parameters, waves=waves, instead=netlist(Target("", top, dict(parameters))))

    kept = (verilated_nic._library, sync_ring.library)
    for harness in (verilated_nic, sync_ring):
        monkeypatch.setattr(harness, "load", load_cells)
    for library in kept:
        library.cache_clear()
    yield
    for library in kept:
        library.cache_clear()


def test_rings_of_sync_nodes(seed: int) -> None:
    """Two and three nodes of cells alone, the three over links and memories that do everything that they may."""
    for devices in (2, 3):
        check_ring(devices, seed, faults=devices == 3)


def test_worker_nics_in_an_all_reduce(rng: random.Random) -> None:
    """Three WorkerNICs of cells alone around the switch's model, with frames lost, doubled and overtaken."""
    test_rtl_nic.test_all_reduce_gives_everyone_the_sum(rng)


def test_an_agg_nic_among_worker_nics(rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """An AggNIC of cells among WorkerNICs of the RTL: sums of all types come, bytes go down, among the same faults."""
    of_cells = verilated_nic.load

    def load_root(top: str, bench: Path, parameters: Mapping[str, int], *, waves: bool = False) -> RtlLibrary:
        which = of_cells if parameters["ROLE"] == Role.ROOT.value else load
        return which(top, bench, parameters, waves=waves)

    monkeypatch.setattr(verilated_nic, "load", load_root)
    test_rtl_nic.test_gradients_up_and_parameters_down_under_any_faults(2, rng)
