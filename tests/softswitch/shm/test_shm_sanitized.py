"""Both ends of shared-memory ports under AddressSanitizer and UndefinedBehaviorSanitizer, through the same tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sanitizers import runtime

from catchment.checkout import ROOT

pytest_plugins = ["shm_switch"]

BUILD = ROOT / "build" / "sanitize"
TESTS = ["test_shm_frames.py", "test_shm_hostile.py", "test_shm_lifecycle.py"]
# Command lines are the server's.
LEFT_OUT = "not wrong_port"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_sanitizer_finding_in_ports(wires: tuple[Path, Path]) -> None:
    assert wires[0].is_file()  # compiled before, by a compiler without the sanitizers
    binaries = Path(sys.executable).parent
    cmake = shutil.which("cmake", path=binaries) or "cmake"
    configure = [
        *(cmake, "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo"),
        *("-DCATCHMENT_SANITIZE=ON", "-DCATCHMENT_DEVELOPER=ON", f"-DPython_EXECUTABLE={sys.executable}"),
        f"-DCMAKE_MAKE_PROGRAM={binaries / 'ninja'}",
    ]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run([cmake, "--build", BUILD, "--target", "port-loop", "catchment_shm"], check=True)
    environment = os.environ | {
        "CATCHMENT_NATIVE_DIR": str(BUILD),
        "CATCHMENT_SWITCH": str(BUILD / "tests" / "softswitch" / "shm" / "port-loop"),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself never frees all
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    files = [str(Path(__file__).with_name(name)) for name in TESTS]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-k", LEFT_OUT, *files],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-8000:]
