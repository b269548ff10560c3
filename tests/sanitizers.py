"""Builds under the compiler's sanitizers, and what tests run with them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from catchment.checkout import ROOT

BINARIES = Path(sys.executable).parent
SANITIZED = ROOT / "build" / "sanitize"
"""The build folder of AddressSanitizer and UndefinedBehaviorSanitizer, which their tests share."""


def runtime(library: str) -> str:
    """The path of a library that the compiler brings, such as ``libasan.so``."""
    return subprocess.run(
        ["g++", f"-print-file-name={library}"], check=True, capture_output=True, text=True
    ).stdout.strip()


def build_sanitized(*targets: str) -> Path:
    """Build these targets under AddressSanitizer and UndefinedBehaviorSanitizer; the build folder."""
    options = ("-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCATCHMENT_SANITIZE=ON", "-DCATCHMENT_DEVELOPER=ON")
    build_native(SANITIZED, targets, *options)
    return SANITIZED


def build_native(folder: Path, targets: Sequence[str], *options: str) -> None:
    """Configure a build folder of the native code with CMake's `options`, and build these targets."""
    cmake = shutil.which("cmake", path=BINARIES) or "cmake"
    ninja = shutil.which("ninja", path=BINARIES) or "ninja"
    tools = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", f"-DPython_EXECUTABLE={sys.executable}")
    for command in (
        [cmake, "-S", str(ROOT), "-B", str(folder), *tools, *options],
        [cmake, "--build", str(folder), "--target", *targets],
    ):
        done = run_group(command)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]


def run_group(command: Sequence[str], environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a process in a group of its own, with variables besides ours.

    Who is told to wait no longer, by a timeout or by Ctrl-C, ends the group: else compilers would go on.
    """
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
