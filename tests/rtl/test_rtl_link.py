"""Links of a ring under cocotb: their CRC against one bit at a time, and what retry makes of bad wires."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
def test_link_crc(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"WIDTH": 100, "SLICES": 3}
    assert run_cocotb("link_crc", "cocotb_link", seed=seed, monkeypatch=monkeypatch, parameters=parameters) == 4


@pytest.mark.sampled(4)
def test_links_with_retry(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_cocotb("link_pair", "cocotb_link", seed=seed, monkeypatch=monkeypatch, optimize=1) == 4
