"""Builds a shared object from a P4 source file: front end, back end, system compiler; cached by content."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.checkout import build_folder
from catchment.processors import processors
from catchment.softswitch.compiler.backend import generate
from catchment.softswitch.compiler.diagnostics import Diagnostic
from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.compiler.p4info import make_p4info
from catchment.softswitch.errors import SwitchError
from catchment.softswitch.toolchain import INCLUDES, INTERNAL, fault, toolchain
from catchment.softswitch.toolchain import flags as standard_flags

CACHE = build_folder() / "p4"
NOT_FOUND = 5


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """A compiled program. `p4info` is the `p4.config.v1.P4Info` message; `source` the generated C++ file."""

    shared_object: Path
    source: Path
    p4info: Any
    warnings: tuple[Diagnostic, ...]


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
    """Compiles `source`. Raises CompileError for a program that is refused, SwitchError where
    there is no C++ compiler, or it fails.

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
    compiler, identity = toolchain()
    options = [
        *standard_flags(),
        *(["-fsanitize=address,undefined", "-g1", "-O1"] if sanitize else []),
        *(["-Werror"] if strict else []),
        *flags,
    ]
    depends_on = "\0".join([identity, processors(), *options, code, brought])
    key = hashlib.sha256(depends_on.encode(errors="surrogateescape")).hexdigest()[:20]
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
        result = subprocess.run(
            [*command, str(draft), "-o", str(made)], check=False, capture_output=True, text=True, errors="replace"
        )
        draft.replace(cpp)
        if result.returncode != 0 or not made.exists():
            if (wrong := fault(command)) is not None:
                raise SwitchError(INTERNAL, wrong)
            text = result.stderr or result.stdout
            whose = f"or an error in {externs}" if externs is not None else "in the P4 compiler"
            raise SwitchError(INTERNAL, f"the C++ compiler failed on {cpp} (a bug {whose}):\n{text}")
        made.replace(shared_object)
