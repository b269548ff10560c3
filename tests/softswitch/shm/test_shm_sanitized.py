"""Both ends of shared-memory ports under AddressSanitizer and UndefinedBehaviorSanitizer, through the same tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sanitizers import build_sanitized, run_group, runtime

pytest_plugins = ["shm_switch"]

TESTS = ["test_shm_frames.py", "test_shm_hostile.py", "test_shm_lifecycle.py"]
# Command lines are the server's, and so is the log.
LEFT_OUT = "not wrong_port and not operator"


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_sanitizer_finding_in_ports(wires: tuple[Path, Path]) -> None:
    assert wires[0].is_file()  # compiled before, by a compiler without the sanitizers
    build = build_sanitized("port-loop", "catchment_shm")
    environment = {
        "CATCHMENT_NATIVE_DIR": str(build),
        "CATCHMENT_SWITCH": str(build / "tests" / "softswitch" / "shm" / "port-loop"),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself never frees all
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    files = [str(Path(__file__).with_name(name)) for name in TESTS]
    run = run_group([sys.executable, "-m", "pytest", "-q", "-x", "-k", LEFT_OUT, *files], environment)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-8000:]
