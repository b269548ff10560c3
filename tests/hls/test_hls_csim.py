"""The C simulation that Vitis would run passes under g++."""

from __future__ import annotations

import ctypes
import random
import re
import subprocess

import numpy as np
import pytest

from catchment.hls.build import HLS, KERNELS, compile_kernels, scoreboard
from catchment.rtl.packed import layout
from catchment.rtl.sources import RTL


@pytest.mark.sampled(4)
def test_c_simulation() -> None:
    result = subprocess.run([compile_kernels("csim.cpp", "csim")], capture_output=True, text=True, check=False)
    assert result.stdout == "csim: 0 failures\n"
    assert result.returncode == 0


def test_the_tcl_names_the_kernels_and_files_that_there_are() -> None:
    tcl = (HLS / "vitis.tcl").read_text()
    for kernel in KERNELS:
        assert kernel in tcl
    text = "".join((HLS / kernel).read_text() for kernel in KERNELS)
    (names,) = re.findall(r"^foreach kernel \{(.*)\}", tcl, re.MULTILINE)
    for name in names.split():
        assert re.search(rf"^\w+ {name}\(", text, re.MULTILINE)
    assert {"float_to_int", "int_to_float", "sender", "consumer", "glm_forward", "glm_backward"} <= {*names.split()}
    testbench = (HLS / "csim.cpp").read_text()
    for name in names.split():
        assert re.search(rf"\b{name}\(", testbench), f"the testbench never calls {name}"


@pytest.mark.sampled(4)
def test_the_converters_have_the_streams_of_the_rtl(rng: random.Random) -> None:
    """Their widths, and how to convert as it lies in TUSER; names differ in Vitis' capitals alone."""
    found = np.zeros(8, np.uint32)
    scoreboard().hls_pins(found.ctypes.data_as(ctypes.c_void_p))
    how = layout("format_pkg", "format_t")
    assert found.tolist() == [512, 64, how.bits, 1, 512, 64, 64, 1]
    for module in ("float_to_int", "int_to_float"):
        ports = re.findall(r"\b([sm]_axis)_t(data|keep|last|user)\b", (RTL / "format" / f"{module}.sv").read_text())
        streams = rf"^void {module}\(hls::stream<(\w+)>& (\w+), hls::stream<(\w+)>& (\w+)\)"
        kernel = re.search(streams, (HLS / "convert.cpp").read_text(), re.MULTILINE)
        assert kernel is not None
        assert (kernel[2], kernel[4]) == ("s_axis", "m_axis")
        assert ("m_axis", "user") in ports if kernel[3] == "CutBeat" else ("m_axis", "user") not in ports
    for _ in range(20):
        dtype, exponent, headroom = rng.randrange(5), rng.randrange(-128, 128), rng.randrange(7)
        pairs, full = rng.randrange(2), rng.randrange(2)
        packed = how.pack({"dtype": dtype, "exponent": exponent, "headroom": headroom, "pairs": pairs, "full": full})
        assert scoreboard().hls_format(dtype, exponent, headroom | pairs << 3 | full << 4) == packed
