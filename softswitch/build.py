"""Builds a shared object from a P4 source file: front end, back end, system compiler; cached by content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from catchment.checkout import ROOT, build_folder
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import Diagnostic
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.errors import SwitchError

INCLUDES = (ROOT / "softswitch" / "runtime" / "include", ROOT / "common" / "include")
CACHE = build_folder() / "p4"
NOT_FOUND, INTERNAL = 5, 13

# CATCHMENT_MARCH: for which processors, where a program is compiled for other machines than this one.
FLAGS = (
    "-std=c++20",
    "-O3",
    f"-march={os.environ.get('CATCHMENT_MARCH', 'native')}",
    "-fPIC",
    "-shared",
    "-Wall",
    "-Wextra",
    "-fvisibility=hidden",
)


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program. `p4info` is the `p4.config.v1.P4Info` message; `source` the generated C++ file."""

    shared_object: Path
    source: Path
    p4info: Any
    warnings: tuple[Diagnostic, ...]


@cache
def _toolchain() -> tuple[str, str]:
    """The system's C++ compiler, and what identifies it and the runtime's headers."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        raise SwitchError(INTERNAL, "no C++ compiler found: install g++ (12 or later), or set CXX")
    version = subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout
    digest = hashlib.sha256(version.encode())
    for header in (header for folder in INCLUDES for header in sorted(folder.rglob("*.hpp"))):
        digest.update(header.read_bytes())
    return compiler, digest.hexdigest()


def build(
    source: Path,
    include_dirs: Sequence[Path] = (),
    defines: Mapping[str, str] | None = None,
    *,
    sanitize: bool = False,
    strict: bool = False,
    unique_names: bool = True,
    flags: Sequence[str] = (),
    externs: Path | None = None,
    cache_dir: Path = CACHE,
) -> BuiltProgram:
    """Compiles `source`. Raises CompileError for a program that is refused, SwitchError if the C++ compiler fails.

    `strict`: a warning of the C++ compiler is an error (for tests of the back end). `sanitize`: with Address- and
    UndefinedBehaviorSanitizer (the process that loads it must have them, too). `unique_names`: see make_p4info. `flags`
    come last, e.g. -O0 for many small programs. `externs`: a C++ header with the externs that the program declares
    itself (docs/howto/user-externs.md).
    """
    checked = check_file(source, include_dirs, defines)
    p4info = make_p4info(checked.program, unique_names=unique_names)
    try:
        brought = externs.read_text() if externs is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SwitchError(NOT_FOUND, f"the externs of {source} cannot be read: {error}") from error
    code = generate(checked.program, p4info, source.stem, externs)
    compiler, identity = _toolchain()
    options = [
        *FLAGS,
        *(["-fsanitize=address,undefined", "-g1", "-O1"] if sanitize else []),
        *(["-Werror"] if strict else []),
        *flags,
    ]
    key = hashlib.sha256("\0".join([identity, *options, code, brought]).encode()).hexdigest()[:20]
    folder = cache_dir / f"{source.stem}-{key}"
    shared_object, cpp = folder / f"{source.stem}.so", folder / f"{source.stem}.cpp"
    if not shared_object.exists():
        _compile([compiler, *options, *(f"-I{include}" for include in INCLUDES)], code, shared_object, cpp, externs)
    return BuiltProgram(shared_object, cpp, p4info, checked.warnings)


def _compile(command: Sequence[str], code: str, shared_object: Path, cpp: Path, externs: Path | None) -> None:
    """Compile into a temporary name first, so that no process ever sees half a file."""
    folder = cpp.parent
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        draft = Path(temporary) / cpp.name
        draft.write_text(code)
        made = draft.with_suffix(".so")
        result = subprocess.run([*command, str(draft), "-o", str(made)], check=False, capture_output=True, text=True)
        draft.replace(cpp)
        if result.returncode != 0:
            text = result.stderr or result.stdout
            whose = f"or an error in {externs}" if externs is not None else "in the P4 compiler"
            raise SwitchError(INTERNAL, f"the C++ compiler failed on {cpp} (a bug {whose}):\n{text}")
        made.replace(shared_object)
