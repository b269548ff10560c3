"""No frame crashes the switch or gets lost uncounted; the long run is under Address- and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fuzz_switch.py")
ROOT = SCRIPT.parents[3]
PROGRAMS = ("luwu", "p4sgd", "copies", "loops")


@pytest.mark.sampled(4)
def test_mutated_frames_are_all_counted(seed: int) -> None:
    command = [sys.executable, str(SCRIPT), str(seed), "100000", *PROGRAMS]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout}{result.stderr}"


def _sanitizer(name: str) -> str:
    command = ["g++", f"-print-file-name=lib{name}.so"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mutated_frames_under_the_sanitizers(seed: int) -> None:
    build = ROOT / "build" / "sanitize"
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DCATCHMENT_SANITIZE=ON"]
    configure += ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "_softswitch"], check=True, capture_output=True)
    environment = os.environ | {
        "LD_PRELOAD": f"{_sanitizer('asan')} {_sanitizer('ubsan')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "CATCHMENT_NATIVE_DIR": str(build),
    }
    command = [sys.executable, str(SCRIPT), str(seed), "1000000", "sanitize", *PROGRAMS]
    result = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout}{result.stderr[-6000:]}"
