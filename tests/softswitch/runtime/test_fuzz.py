"""No frame crashes the switch or gets lost uncounted; the long run is under Address- and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sanitizers import build_sanitized, run_group, runtime

SCRIPT = Path(__file__).with_name("fuzz_switch.py")
PROGRAMS = ("luwu", "p4sgd", "copies", "loops")


@pytest.mark.sampled(4)
def test_mutated_frames_are_all_counted(seed: int) -> None:
    command = [sys.executable, str(SCRIPT), str(seed), "100000", *PROGRAMS]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout}{result.stderr}"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mutated_frames_under_the_sanitizers(seed: int) -> None:
    environment = {
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
        "CATCHMENT_NATIVE_DIR": str(build_sanitized("_softswitch")),
    }
    command = [sys.executable, str(SCRIPT), str(seed), "1000000", "sanitize", *PROGRAMS]
    result = run_group(command, environment)
    assert result.returncode == 0, f"seed {seed}\n{result.stdout}{result.stderr[-6000:]}"
