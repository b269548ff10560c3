"""Shared state under the sanitizers: its tests with those of addresses and behaviour, threads with the third."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sanitizers import build_sanitized, run_group, runtime

from catchment.checkout import ROOT
from catchment.softswitch.build import build

HERE = Path(__file__).parent
TESTS = ["test_callers.py", "test_shared_state.py", "test_state_memory.py"]
# The data plane, without ports.
WITHOUT = {"port", "ring", "packet", "fault", "link", "send", "segment", "shm", "udp", "super", "datagram", "ethernet"}
INCLUDES = [ROOT / part / "include" for part in ("softswitch/runtime", "softswitch/shm", "common")]
ROUNDS = 20_000


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_sanitizer_finding_in_callers() -> None:
    for name in ("pairs.p4", "../server/kinds.p4", "../server/extras.p4"):
        build(HERE / name)  # by a compiler without the sanitizers
    build(HERE / "../externs/bloom.p4", externs=HERE / "../externs/bloom.hpp")
    environment = {
        "CATCHMENT_NATIVE_DIR": str(build_sanitized("_softswitch")),
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')} {runtime('libstdc++.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself never frees all
        "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    }
    run = run_group([sys.executable, "-m", "pytest", "-q", "-x", *(str(HERE / name) for name in TESTS)], environment)
    assert run.returncode == 0, run.stdout[-6000:] + run.stderr[-8000:]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_no_race_between_frames_control_calls_and_programs(tmp_path: Path) -> None:
    program = build(HERE / "pairs.p4")
    table, action = program.p4info.tables[0], next(a for a in program.p4info.actions if a.params)
    runtime_folder = ROOT / "softswitch" / "runtime"
    sources = [
        source for source in sorted((runtime_folder / "src").glob("*.cpp")) if not WITHOUT & set(source.stem.split("_"))
    ]
    sources.append(ROOT / "softswitch" / "shm" / "src" / "fork_guard.cpp")  # what a mapping knows forks by
    includes = [f"-I{folder}" for folder in INCLUDES]
    flags = ["-std=c++20", "-O1", "-g", "-fsanitize=thread", "-pthread", *includes]
    binary = tmp_path / "state-threads"
    compiled = run_group(["g++", *flags, *map(str, (HERE / "state_threads.cpp", *sources)), "-ldl", "-o", str(binary)])
    assert compiled.returncode == 0, compiled.stderr
    numbers = [table.preamble.id, action.preamble.id, table.match_fields[0].id, action.params[0].id]
    run = subprocess.run(
        [binary, program.shared_object, str(ROUNDS), *map(str, numbers)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, f"{2 * ROUNDS} frames, 0 strays\n"), run.stderr[-6000:]
    assert "WARNING: ThreadSanitizer" not in run.stderr, run.stderr[-6000:]
