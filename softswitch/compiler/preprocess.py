"""The C preprocessor, as p4c runs it: the system's `cpp`, with line markers kept so that errors keep their place."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from catchment.softswitch.compiler.diagnostics import CompileError, Diagnostic
from catchment.softswitch.compiler.source import Location

P4INCLUDE = Path(__file__).parent / "p4include"
"""Our own core.p4 and v1model.p4."""

OTHER_ARCHITECTURES = {
    "psa.p4": "PSA",
    "pna.p4": "PNA",
    "ebpf_model.p4": "eBPF",
    "xdp_model.p4": "XDP",
    "ubpf_model.p4": "uBPF",
    "tna.p4": "Tofino",
    "t2na.p4": "Tofino 2",
}
"""The file that programs include -> the architecture it stands for, which this compiler does not know."""

_MESSAGE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<col>\d+): (?:fatal )?error: (?P<text>.*)$")

_MARKER = re.compile(r'^# (?P<line>\d{1,12}) "(?P<file>[^"]*)"')


def definitions(texts: Iterable[str]) -> dict[str, str]:
    """Macro names and their text, of NAME=VALUE or NAME, which is 1. Raises ValueError."""
    found = {}
    for text in texts:
        name, given, value = text.partition("=")
        if not name.isidentifier():
            raise ValueError(f"{text!r} is not NAME=VALUE")
        found[name] = value if given else "1"
    return found


def preprocess(source: Path, include_dirs: Sequence[Path] = (), defines: Mapping[str, str] | None = None) -> str:
    """The program's text after preprocessing, with `# line "file"` markers.

    `include_dirs` are searched in order, then our own `p4include`. `defines` maps macro names to their text.
    Raises `CompileError` for a missing file, `#error`, or a malformed directive.
    """
    if not source.is_file():
        raise CompileError([Diagnostic(Location(str(source), 1, 1), "no such file", "check the program's path")])
    command = ["cpp", "-C", "-undef", "-nostdinc", "-x", "assembler-with-cpp"]
    command += [f"-I{directory}" for directory in [*include_dirs, P4INCLUDE]]
    command += [f"-D{name}={value}" for name, value in (defines or {}).items()]
    try:
        result = subprocess.run([*command, str(source)], capture_output=True, check=False)
    except FileNotFoundError:
        message = "the C preprocessor `cpp` is not installed"
        raise CompileError([Diagnostic(Location(str(source), 1, 1), message, "apt install cpp")]) from None
    if result.returncode != 0:
        raise CompileError(_complaints(source, result.stderr.decode(errors="replace")))
    try:
        return restore_spaces(result.stdout.decode())
    except UnicodeDecodeError:
        raise CompileError([Diagnostic(Location(str(source), 1, 1), "the program is not UTF-8 text")]) from None


def restore_spaces(text: str) -> str:
    """`cpp` shortens runs of spaces, which moves columns: puts back each line that is otherwise as in its file."""
    files: dict[str, list[str]] = {}
    source: list[str] = []
    number = 0
    lines = text.split("\n")
    for index, line in enumerate(lines):
        marker = _MARKER.match(line)
        if marker:
            name = marker["file"]
            if name not in files:
                path = Path(name)
                files[name] = path.read_text(errors="replace").split("\n") if path.is_file() else []
            source, number = files[name], int(marker["line"]) - 1
            continue
        if number < len(source) and source[number] != line and source[number].split() == line.split():
            lines[index] = source[number]
        number += 1
    return "\n".join(lines)


def _include_hint(complaint: str) -> str:
    """What to do about a file that is not found: programs for other architectures include theirs."""
    name, colon, _ = complaint.partition(": No such file")
    if not colon:
        return ""
    other = OTHER_ARCHITECTURES.get(Path(name).name)
    if other is not None:
        return f"{name} is {other}'s; the one architecture here is v1model: #include <v1model.p4>"
    return "-I names the folders that are searched; core.p4 and v1model.p4 come with the compiler"


def _complaints(source: Path, stderr: str) -> list[Diagnostic]:
    found = [_MESSAGE.match(line) for line in stderr.splitlines()]
    complaints = [
        Diagnostic(
            Location(m["file"], int(m["line"]), int(m["col"])), f"preprocessor: {m['text']}", _include_hint(m["text"])
        )
        for m in found
        if m
    ]
    text = stderr.strip().splitlines()
    fallback = Diagnostic(Location(str(source), 1, 1), f"preprocessor: {text[0] if text else 'failed'}")
    return complaints or [fallback]
