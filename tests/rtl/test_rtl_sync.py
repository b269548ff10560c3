"""Rings of sync cores under cocotb: sums and maxima equal to numpy's, no deadlock, and the clocks that they take."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


def test_rings(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cocotb("sync_ring", "cocotb_sync", seed=seed, monkeypatch=monkeypatch) == 4
