"""rtl/common under cocotb, a build per module: random traffic against a list or a count, coverage asserted."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from cocotb_run import run_cocotb


@pytest.fixture
def run(seed: int, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def run(top: str, parameters: Mapping[str, object]) -> None:
        run_cocotb(top, "cocotb_common", seed=seed, monkeypatch=monkeypatch, parameters=parameters)

    return run


@pytest.mark.sampled(4)
@pytest.mark.parametrize("style", ["block"])
def test_sync_fifo(style: str, run) -> None:  # type: ignore[no-untyped-def]
    run("sync_fifo", {"WIDTH": 32, "DEPTH": 4, "RAM_STYLE": f'"{style}"'})


@pytest.mark.sampled(4)
def test_skid_buffer(run) -> None:  # type: ignore[no-untyped-def]
    run("skid_buffer", {"WIDTH": 32})


@pytest.mark.sampled(4)
def test_arbiter(run) -> None:  # type: ignore[no-untyped-def]
    run("arbiter_rr", {"COUNT": 4})


@pytest.mark.sampled(4)
def test_axil_regs(run) -> None:  # type: ignore[no-untyped-def]
    run("axil_regs", {"ADDR_WIDTH": 8})


@pytest.mark.sampled(4)
def test_event_counters(run) -> None:  # type: ignore[no-untyped-def]
    run("event_counters", {"EVENTS": 32, "WIDTH": 48})
