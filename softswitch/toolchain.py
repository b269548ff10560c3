"""The system's C++ compiler: which it is, the options it gets, and what is wrong where it compiles nothing at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from catchment.checkout import ROOT
from catchment.processors import MARCH, march
from catchment.softswitch.errors import SwitchError

INCLUDES = (ROOT / "softswitch" / "runtime" / "include", ROOT / "common" / "include")
INTERNAL = 13
_ADVICE = "set CXX to the path of a C++ compiler (g++ 12 or later), without arguments, or unset it"


def flags() -> tuple[str, ...]:
    """What each program is compiled with.

    CATCHMENT_MARCH says for which processors, where it is for other machines than this one.
    """
    return (
        "-std=c++20",
        "-O3",
        f"-march={march()}",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
        "-fvisibility=hidden",
    )


@cache
def toolchain() -> tuple[str, str]:
    """The system's C++ compiler, and what identifies it and the runtime's headers.

    Raises:
        SwitchError: there is none, or what CXX names does not run.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise SwitchError(INTERNAL, "no C++ compiler found: install g++ (12 or later), or set CXX")
    try:
        ran = _run([compiler, "--version"])
    except OSError as error:
        raise SwitchError(INTERNAL, f"{_named(compiler)} cannot be run: {error.strerror}; {_ADVICE}") from None
    if ran.returncode != 0:
        raise SwitchError(INTERNAL, f"{_named(compiler)} is no C++ compiler: it refuses --version; {_ADVICE}")
    digest = hashlib.sha256(ran.stdout.encode())
    for header in (header for folder in INCLUDES for header in sorted(folder.rglob("*.hpp"))):
        digest.update(header.read_bytes())
    return compiler, digest.hexdigest()


def fault(command: Sequence[str]) -> str | None:
    """What is wrong with a compiler and its options, with what to do; None where they compile an empty file.

    Args:
        command: the compiler and its options, without files.
    """
    said = _refusal_of_nothing(command)
    if said is None:
        return None
    compiler, given = command[0], os.environ.get(MARCH)
    others = [option for option in command if not option.startswith("-march=")]
    if len(others) < len(command) and _refusal_of_nothing(others) is None:
        if given:
            return (
                f"{MARCH}={given}: {compiler} knows no such processors; give a value of its -march, as x86-64-v3, or "
                f"unset it to compile for this machine:\n{said}"
            )
        return f"{compiler} does not take -march=native: set {MARCH} to a value that it takes:\n{said}"
    return f"{_named(compiler)} does not even compile an empty file with {' '.join(command[1:])}; {_ADVICE}:\n{said}"


def _named(compiler: str) -> str:
    return f"CXX={compiler}" if os.environ.get("CXX") else f"the C++ compiler {compiler}"


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")


def _refusal_of_nothing(command: Sequence[str]) -> str | None:
    """What a compiler says against an empty file; None where it makes a library of it."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "empty.so"
        ran = _run([*command, "-x", "c++", os.devnull, "-o", str(made)])
        if ran.returncode == 0 and made.exists():
            return None
        return (ran.stderr or ran.stdout).strip() or f"it ended with {ran.returncode}, and wrote nothing"
