"""The netlists of whole tops in the place of their sources, under the tests of the sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from netlists import netlist
from test_rtl_sync_node import check_ring

from catchment.rtl.harness import sync_ring
from catchment.rtl.harness.library import RtlLibrary, load
from catchment.rtl.synth import Target

# To synthesize a top and to compile its netlist takes minutes of a processor, once.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def load_cells(top: str, bench: Path, parameters: Mapping[str, int]) -> RtlLibrary:
    """What synthesis makes of a top, in its harness."""
    return load(top, bench, instead=netlist(Target("", top, dict(parameters))))


def test_rings_of_sync_nodes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two and three nodes of cells alone, the three over links and memories that do everything that they may."""
    monkeypatch.setattr(sync_ring, "load", load_cells)
    sync_ring.library.cache_clear()
    try:
        for devices in (2, 3):
            check_ring(devices, seed, faults=devices == 3)
    finally:
        sync_ring.library.cache_clear()
