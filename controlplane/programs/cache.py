"""Compiled switch programs: which compiler a target needs, and a cache of what it made.

The compilers run as processes of their own: the control plane knows their command lines only.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from catchment.checkout import OTHERS, ROOT, build_folder
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import BY_PORTS, Switch, Target, Topology
from catchment.lock_file import locked
from catchment.wire.generated.constants import MAX_WORKERS

_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


# What an installed package, or another user's checkout, brings along; a switch has its programs in one folder that can
# be written.
_SHIPPED = ROOT / "build" / "programs" if OTHERS else Path(os.devnull)


class CompileError(ControlPlaneError):
    """A program could not be compiled; carries what the compiler said."""


def cache_folder() -> Path:
    """The folder of compiled programs; CATCHMENT_BUILD_DIR overrides.

    Not the compiler's own cache: a switch reads every program of its folder to find the one it is
    told to load, and the compiler's tests leave hundreds there.
    """
    return build_folder() / "programs"


def program_for(switch: Switch) -> PipelineConfig:
    """The compiled program of a switch, built for its lanes and slots; its P4Info in binary.

    Raises:
        CompileError: the compiler is missing or refuses the program.
    """
    compiled = compile_for(switch.target, switch.program, _defines(switch))
    return replace(compiled, p4info=_in_binary(compiled.p4info))


def _in_binary(text: Path) -> Path:
    """P4Info that a process reads a hundred times faster, beside the text that people and other tools read."""
    from catchment.controlplane.client.p4info import BINARY, P4Info  # noqa: PLC0415  it needs gRPC

    binary = text.with_suffix(BINARY)
    if not binary.exists():
        content = P4Info.load(text).message.SerializeToString(deterministic=True)
        try:
            with tempfile.NamedTemporaryFile(dir=binary.parent, delete=False) as part:
                part.write(content)
                os.fchmod(part.fileno(), text.stat().st_mode)
            Path(part.name).replace(binary)  # several may write it at a time
        except OSError as error:
            raise CompileError(f"{binary}: P4Info is not written: {error.strerror}") from None
    return binary


def programs_of(topology: Topology) -> dict[str, PipelineConfig]:
    """The compiled program of every switch; each distinct one is compiled once."""
    return {name: program_for(switch) for name, switch in topology.switches.items()}


def is_compiled(switch: Switch) -> bool:
    """Whether `program_for` finds the program in the cache."""
    return _is_done(_place(switch.target, switch.program.resolve(), _defines(switch)))


def _defines(switch: Switch) -> dict[str, str]:
    most = switch.workers in (BY_PORTS, MAX_WORKERS)  # a switch in no topology may get any number of ports
    fewer = {} if most else {"MAX_WORKERS": str(switch.workers)}
    tags = {"TAGS": "1"} if switch.tags else {}
    return {"LANES": str(switch.lanes), "SLOTS": str(switch.slots), **fewer, **tags}


def compile_for(
    target: Target,
    program: Path,
    defines: Mapping[str, str],
    *,
    folder: Path | None = None,
    externs: Path | None = None,
    include: Sequence[Path] = (),
) -> PipelineConfig:
    """Compile a program, or take it from the cache.

    Args:
        target: what it is for.
        program: P4_16 source.
        defines: preprocessor name -> value.
        folder: takes the results, compiled afresh; the cache by default.
        externs: C++ header that implements the program's own externs; the embedded target alone takes one.
        include: folders in which what the program includes is looked for, in order.

    Raises:
        CompileError: the source or the compiler is missing, the compiler refuses the program, or the folder cannot be
            written.
    """
    if not program.is_file():
        raise CompileError(f"no P4 program at {program}")
    program = program.resolve()  # the compilers run in another folder
    include = [searched.resolve() for searched in include]
    try:
        if folder is None:
            return _cached(target, program, defines, externs, include)
        folder.mkdir(parents=True, exist_ok=True)
        return _compile(target, program, defines, folder.resolve(), externs, include=include)
    except OSError as error:
        own = "" if folder is not None else "; CATCHMENT_BUILD_DIR=FOLDER names another folder for what is compiled"
        raise CompileError(f"{program.name} is not compiled: {error.filename}: {error.strerror}{own}") from None


def _place(
    target: Target,
    program: Path,
    defines: Mapping[str, str],
    externs: Path | None = None,
    include: Sequence[Path] = (),
) -> Path:
    fingerprint = _fingerprint(target, program, defines, externs, include)
    return cache_folder().resolve() / f"{program.stem}-{target}-{fingerprint}"


def _is_done(folder: Path) -> bool:
    return (folder / "done").exists() or (_SHIPPED / folder.name / "done").exists()


def _cached(
    target: Target, program: Path, defines: Mapping[str, str], externs: Path | None, include: Sequence[Path]
) -> PipelineConfig:
    folder = _place(target, program, defines, externs, include)
    if (folder / "done").exists():  # whoever has done it: the folder may be root's
        return _results(target, program, folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):  # two commands may want the same program
        if not (folder / "done").exists():
            if _is_done(folder):
                shutil.copytree(_SHIPPED / folder.name, folder, dirs_exist_ok=True)
            else:
                _compile(target, program, defines, folder, externs, include=include)
            (folder / "done").touch()
    return _results(target, program, folder)


def _results(target: Target, program: Path, folder: Path) -> PipelineConfig:
    suffix = {Target.EMBEDDED: "so", Target.BMV2: "json"}[target]
    return PipelineConfig(folder / f"{program.stem}.p4info.txt", folder / f"{program.stem}.{suffix}")


def _compile(
    target: Target,
    program: Path,
    defines: Mapping[str, str],
    folder: Path,
    externs: Path | None,
    *,
    include: Sequence[Path],
) -> PipelineConfig:
    results = _results(target, program, folder)
    flags = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    flags += [flag for searched in include for flag in ("-I", str(searched))]
    if target is Target.EMBEDDED:
        command = [
            sys.executable, "-m", "catchment.softswitch", str(program), *flags,
            "--p4info", str(results.p4info), "--output", str(results.device_config),
            *(["--externs", str(externs.resolve())] if externs is not None else []),
        ]  # fmt: skip
    else:
        command = [
            _p4c(), "--p4v", "16", *flags, "--p4runtime-files", str(results.p4info),
            "-o", str(results.device_config), str(program),
        ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if run.returncode:
        raise CompileError(f"{program} does not compile for {target}:\n{(run.stderr or run.stdout).strip()}")
    return results


def _p4c() -> str:
    found = shutil.which("p4c-bm2-ss")
    if found is None:
        raise CompileError("p4c-bm2-ss (of p4c) is not on the PATH; see docs/howto/bmv2.md, or use target: embedded")
    return found


def _sources(program: Path, seen: set[Path], include: Sequence[Path]) -> Iterator[Path]:
    """A source and what it includes, beside it or in the folders `include`, as far as the files exist."""
    program = program.resolve()
    if program in seen or not program.is_file():
        return
    seen.add(program)
    yield program
    for name in _INCLUDE.findall(program.read_text("utf-8", errors="replace")):
        for searched in (program.parent, *include):
            yield from _sources(searched / name, seen, include)


def _compiler_files(target: Target) -> list[Path]:
    if target is Target.BMV2:
        return [Path(_p4c()).resolve()]
    folder = ROOT / "softswitch"
    parts = [folder / "compiler", folder / "runtime" / "include", ROOT / "common" / "include"]
    made_by = [folder / "build.py", folder / "toolchain.py"]
    return [*made_by, *(p for part in parts for s in ("*.py", "*.p4", "*.hpp") for p in part.rglob(s))]


def _fingerprint(
    target: Target, program: Path, defines: Mapping[str, str], externs: Path | None, include: Sequence[Path]
) -> str:
    digest = hashlib.sha256(repr((str(target), sorted(defines.items()))).encode())
    digest.update("".join(f"-I{searched}\0" for searched in include).encode())
    for source in _sources(program, set(), include):
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    if externs is not None:
        digest.update(str(externs.resolve()).encode() + hashlib.sha256(externs.read_bytes()).digest())
    for path in sorted(_compiler_files(target)):
        digest.update(f"{path.name}:{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return digest.hexdigest()[:16]
