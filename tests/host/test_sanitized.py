"""The native code under AddressSanitizer and UndefinedBehaviorSanitizer, through the same tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sanitizers import build_sanitized, run_group, runtime

TARGETS = ["_native", "_machines", "_reflector", "_optimizer", "_glm", "_collectives", "_world", "catchment-switch"]
TESTS = [
    "test_state_machines.py",
    "test_numbers.py",
    "test_bad_input.py",
    "test_transfer.py",
    "test_array_places.py",
    "collectives/test_collective_errors.py",
    "collectives/test_collective_sums.py",
    "collectives/test_collective_spoilt.py",
    "collectives/test_engine_turns.py",
    "collectives/test_exponent_guess.py",
    "collectives/test_operations.py",
    "collectives/test_ring_links.py",
    "optimizer/test_native.py",
    "glm/test_glm_encoding.py",
    "glm/test_glm_equals_golden.py",
    "glm/test_glm_reader.py",
]
# They start threads and signals that the preloaded runtime does not survive, import torch, or have no memory left:
# that ends a process there.
LEFT_OUT = "not torch and not forked and not more_buffers and not ctrl_c and not million and not without_memory"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_sanitizer_finding() -> None:
    environment = {
        "CATCHMENT_NATIVE_DIR": str(build_sanitized(*TARGETS)),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself never frees all
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    files = [str(Path(__file__).parent / name) for name in TESTS]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-k", LEFT_OUT, *files]
    run = run_group(command, environment)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-8000:]
