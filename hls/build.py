"""The HLS kernels under g++: a shared object for the RTL's tests, and the C simulation.

usage: python -m catchment.hls.build      builds and runs the C simulation
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from catchment.checkout import ROOT
from catchment.program import run_program

HLS = ROOT / "hls"
# Stands in for what only Vitis has.
OPEN = HLS / "open"
BUILD = ROOT / "build" / "hls"
KERNELS = ("convert.cpp", "sender.cpp", "consumer.cpp", "glm_engine.cpp", "ring_pass.cpp")
GENERATED = (ROOT / "wire" / "generated" / "wire_hls.hpp", ROOT / "wire" / "generated" / "glm_numbers.hpp")
# Where setup puts the wheel that carries ap_int, ap_fixed and hls_stream; its Python part is not used.
HEADERS = Path(sys.prefix) / "hls" / "hls4ml" / "templates" / "vivado" / "ap_types"


class HlsError(Exception):
    """The headers are missing, or g++ refused the sources; the message has what it said."""


def compile_kernels(main: str, name: str, *flags: str) -> Path:
    """The kernels with `main`, kept under build/hls/ by content.

    Raises:
        HlsError: with the compiler's complaint.
    """
    if not HEADERS.is_dir():
        raise HlsError(f"{HEADERS} is not there: run `make setup`")
    digest = hashlib.sha256(repr(flags).encode())
    for path in [*sorted(HLS.glob("*.?pp")), *sorted(OPEN.glob("*.h")), *GENERATED]:
        digest.update(path.read_bytes())
    folder = BUILD / digest.hexdigest()[:16]
    product = folder / name
    if product.is_file():
        return product
    folder.mkdir(parents=True, exist_ok=True)
    partial = product.with_suffix(f".{os.getpid()}")
    command: list[str | Path] = [
        "g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-Wno-unused-label",
        # of the headers, where they come inline
        "-Wno-maybe-uninitialized", "-Wno-uninitialized", *flags,
        "-isystem", HEADERS, "-I", OPEN, "-I", HLS, "-I", ROOT / "wire" / "generated",
        *(HLS / kernel for kernel in KERNELS), HLS / main, "-o", partial,
    ]  # fmt: skip
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if result.returncode != 0:
        raise HlsError(result.stdout)
    partial.rename(product)
    return product


@cache
def scoreboard() -> ctypes.CDLL:
    """The functions of scoreboard.cpp.

    Raises:
        HlsError: it does not build.
    """
    library = ctypes.CDLL(str(compile_kernels("scoreboard.cpp", "scoreboard.so", "-shared", "-fPIC")))
    library.hls_float_to_int.restype = ctypes.c_uint64
    library.hls_int_to_float.restype = ctypes.c_uint64
    return library


@cache
def glm_scoreboard() -> ctypes.CDLL:
    """The functions of glm_scoreboard.cpp.

    Raises:
        HlsError: it does not build.
    """
    library = ctypes.CDLL(str(compile_kernels("glm_scoreboard.cpp", "glm_scoreboard.so", "-shared", "-fPIC")))
    library.hls_glm_new.restype = ctypes.c_void_p
    return library


@cache
def ring_scoreboard() -> ctypes.CDLL:
    """The functions of ring_scoreboard.cpp.

    Raises:
        HlsError: it does not build.
    """
    return ctypes.CDLL(str(compile_kernels("ring_scoreboard.cpp", "ring_scoreboard.so", "-shared", "-fPIC")))


def main() -> int:
    """Build the HLS kernels, and run their C simulation."""
    try:
        program = compile_kernels("csim.cpp", "csim")
    except HlsError as error:
        print(error, file=sys.stderr)
        return 1
    return subprocess.run([program], check=False).returncode


if __name__ == "__main__":
    run_program(main)
