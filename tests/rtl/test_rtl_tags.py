"""The hash of a frame's tag in hardware, under cocotb, beside the golden model."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
def test_hashes(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cocotb("sip_hash", "cocotb_tags", seed=seed, monkeypatch=monkeypatch) == 2
