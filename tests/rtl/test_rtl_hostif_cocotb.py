"""rtl/hostif under cocotb: TLB and queue against a dict and a list, host_access before a memory of cocotbext-axi."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb


@pytest.mark.sampled(4)
def test_tlb(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb("tlb", "cocotb_hostif", seed=seed, monkeypatch=monkeypatch, parameters={"ENTRIES": 8})


@pytest.mark.sampled(4)
def test_request_queue(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb("request_queue", "cocotb_hostif", seed=seed, monkeypatch=monkeypatch, parameters={"DEPTH": 4})


@pytest.mark.sampled(4)
def test_host_access(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb("host_access_axi", "cocotb_host_access", seed=seed, monkeypatch=monkeypatch)
