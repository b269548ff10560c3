"""The register block under cocotb: what is kept, what is locked while a stream is on, what is refused and counted."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
def test_nic_registers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb("nic_registers", "cocotb_registers", seed=seed, monkeypatch=monkeypatch)
