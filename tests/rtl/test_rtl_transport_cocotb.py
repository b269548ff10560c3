"""A worker's transport under cocotb: idle x back-pressure on every stream, frames built and parsed by scapy."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
def test_transport_under_cocotb(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cocotb("transport", "cocotb_transport", seed=seed, monkeypatch=monkeypatch) == 9
