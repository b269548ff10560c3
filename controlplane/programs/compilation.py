"""One compilation of a switch program: what goes into it, what tells it from others, and the compiler of its target.

The compilers run as processes of their own: the control plane knows their command lines only.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from catchment.checkout import ROOT
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import Target

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


class CompileError(ControlPlaneError):
    """A program could not be compiled; carries what the compiler said."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a compiler is given.

    Attributes:
        target: what the program is for.
        program: P4_16 source.
        defines: preprocessor name -> value.
        externs: C++ header that implements the program's own externs; the embedded target alone takes one.
        include: folders in which what the program includes is looked for, in order.

    All paths are absolute: compilers run in a folder of their own.
    """

    target: Target
    program: Path
    defines: Mapping[str, str]
    externs: Path | None = None
    include: tuple[Path, ...] = ()

    def results(self, folder: Path) -> PipelineConfig:
        """The files that the compiler makes in a folder."""
        suffix = {Target.EMBEDDED: "so", Target.BMV2: "json"}[self.target]
        return PipelineConfig(folder / f"{self.program.stem}.p4info.txt", folder / f"{self.program.stem}.{suffix}")

    def run(self, folder: Path) -> PipelineConfig:
        """Have the compiler make them.

        Raises:
            CompileError: the compiler is missing, or refuses the program.
        """
        results = self.results(folder)
        run = subprocess.run(self._command(results), capture_output=True, text=True, check=False, cwd=ROOT)
        if run.returncode:
            said = (run.stderr or run.stdout).strip()
            raise CompileError(f"{self.program} does not compile for {self.target}:\n{said}")
        return results

    def fingerprint(self) -> str:
        """A name for all that the results depend on: what is given, as the files are now, and the compiler."""
        digest = hashlib.sha256(repr((str(self.target), sorted(self.defines.items()))).encode())
        digest.update("".join(f"-I{searched}\0" for searched in self.include).encode())
        for source in self._sources(self.program, set()):
            digest.update(hashlib.sha256(source.read_bytes()).digest())
        if self.externs is not None:
            digest.update(str(self.externs).encode() + hashlib.sha256(self.externs.read_bytes()).digest())
        for path in sorted(_compiler_files(self.target)):
            digest.update(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
        return digest.hexdigest()[:16]

    def _command(self, results: PipelineConfig) -> list[str]:
        flags = [f"-D{name}={value}" for name, value in sorted(self.defines.items())]
        flags += [flag for searched in self.include for flag in ("-I", str(searched))]
        if self.target is Target.EMBEDDED:
            return [
                sys.executable, "-m", "catchment.softswitch", str(self.program), *flags,
                "--p4info", str(results.p4info), "--output", str(results.device_config),
                *(["--externs", str(self.externs)] if self.externs is not None else []),
            ]  # fmt: skip
        return [
            _p4c(), "--p4v", "16", *flags, "--p4runtime-files", str(results.p4info),
            "-o", str(results.device_config), str(self.program),
        ]  # fmt: skip

    def _sources(self, source: Path, seen: set[Path]) -> Iterator[Path]:
        """A source and what it includes, beside it or in the folders `include`, as far as the files exist."""
        source = source.resolve()
        if source in seen or not source.is_file():
            return
        seen.add(source)
        yield source
        for name in _INCLUDE.findall(source.read_text("utf-8", errors="replace")):
            for searched in (source.parent, *self.include):
                yield from self._sources(searched / name, seen)


def _p4c() -> str:
    found = shutil.which("p4c-bm2-ss")
    if found is None:
        raise CompileError("p4c-bm2-ss (of p4c) is not on the PATH; see docs/howto/bmv2.md, or use target: embedded")
    return found


def _compiler_files(target: Target) -> list[Path]:
    if target is Target.BMV2:
        return [Path(_p4c()).resolve()]
    folder = ROOT / "softswitch"
    parts = [folder / "compiler", folder / "runtime" / "include", ROOT / "common" / "include"]
    made_by = [folder / "build.py", folder / "toolchain.py"]
    return [*made_by, *(p for part in parts for s in ("*.py", "*.p4", "*.hpp") for p in part.rglob(s))]
