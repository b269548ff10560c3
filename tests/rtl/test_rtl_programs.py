"""Programs of the hardware that take no arguments say so."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest


@pytest.mark.parametrize("program", ["catchment.rtl.lint", "catchment.hls.build"])
def test_a_program_that_takes_nothing_refuses_what_it_is_given(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def started(*_: object, **__: object) -> None:
        pytest.fail("a name that does not count has begun something")

    monkeypatch.setattr(subprocess, "run", started)
    monkeypatch.setattr(sys, "argv", [program, "sync_fifo"])
    monkeypatch.delitem(sys.modules, program, raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(program, run_name="__main__")
    assert end.value.code == 2 and "sync_fifo" in capsys.readouterr().err
