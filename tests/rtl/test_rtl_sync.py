"""Rings of sync cores under cocotb: sums and maxima equal to numpy's, no deadlock, and the clocks that they take."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rings", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_rings(rings: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RINGS", str(rings))
    assert run_cocotb("sync_ring", "cocotb_sync", seed=seed, monkeypatch=monkeypatch, optimize=1) == 4


@pytest.mark.sampled(4)
def test_lanes_of_binary32(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"LANES": 4, "FP32": 1}
    assert run_cocotb("lane_alu", "cocotb_fp32", seed=seed, monkeypatch=monkeypatch, parameters=parameters) == 1
