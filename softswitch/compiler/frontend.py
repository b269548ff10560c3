"""The front end as one function: from a P4 source file to checked IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catchment.softswitch.compiler import ir
from catchment.softswitch.compiler.check import check
from catchment.softswitch.compiler.diagnostics import Diagnostic, Diagnostics
from catchment.softswitch.compiler.lexer import tokenize
from catchment.softswitch.compiler.parser import parse
from catchment.softswitch.compiler.preprocess import preprocess


@dataclass(frozen=True, slots=True)
class Checked:
    """A program that passed every check, and the warnings on the way."""

    program: ir.Program
    warnings: tuple[Diagnostic, ...]


def check_text(text: str, file: str = "<text>") -> Checked:
    """Checks preprocessed text. Raises `CompileError`."""
    diagnostics = Diagnostics()
    program = check(parse(tokenize(text, file)), diagnostics)
    return Checked(program, tuple(diagnostics.warnings))


def check_file(source: Path, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None) -> Checked:
    """Preprocesses and checks a file. Raises `CompileError`."""
    return check_text(preprocess(source, include_dirs, defines), str(source))
