"""The C simulation that Vitis would run passes under g++."""

from __future__ import annotations

import re
import subprocess

from catchment.hls.build import HLS, KERNELS, compile_kernels


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
