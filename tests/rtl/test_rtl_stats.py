"""The counters of a NIC under cocotb."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
@pytest.mark.parametrize("top", ["host_stats", "transport_stats"])
def test_every_counter_counts_its_own(top: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb(top, "cocotb_stats", seed=seed, monkeypatch=monkeypatch)
