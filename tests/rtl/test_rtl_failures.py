"""An assertion of the hardware is an exception of the call that ran into it, and ends nothing else."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import pytest

from catchment.rtl.harness.library import RtlFailedError, RtlLibrary, load
from catchment.rtl.sources import RTL
from catchment.rtl.verilate import RtlError

_CHECK = RTL / "common" / "stream_check.sv"
_CLOCKS = 100
_NEVER = 2**63


@cache
def _library() -> RtlLibrary:
    library = load("stream_check", Path(__file__).with_name("stream_check_bench.cpp"))
    library.run_stream_check.restype = ctypes.c_uint64
    return library


def _run(breaks: int) -> int:
    return int(_library().run_stream_check(ctypes.c_uint64(_CLOCKS), ctypes.c_uint64(breaks)))


def test_a_failed_assertion_names_module_place_and_message() -> None:
    with pytest.raises(RtlFailedError) as raised:
        _run(breaks=50)
    failure = raised.value
    assert failure.module == "stream_check"
    assert failure.file == _CHECK
    line = _CHECK.read_text("utf-8").splitlines()[failure.line - 1]
    assert "assert property" in line or "$error" in line
    assert "a beat changed or vanished before it was taken" in failure.said
    assert str(failure).startswith(f"stream_check: {_CHECK}:{failure.line}: ")
    assert isinstance(failure, RtlError)  # what programs that use the hardware catch


def test_a_model_after_one_that_failed_has_nothing_of_it() -> None:
    for breaks in (3, _NEVER, 99, _NEVER):
        if breaks == _NEVER:
            assert _run(breaks) == _CLOCKS
        else:
            with pytest.raises(RtlFailedError, match="vanished"):
                _run(breaks)


def test_one_call_is_told_of_a_failure_once() -> None:
    with pytest.raises(RtlFailedError):
        _run(breaks=50)
    assert _run(_NEVER) == _CLOCKS
