"""A cache of compiled switch programs, by all that they depend on: each is compiled once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from catchment.checkout import OTHERS, ROOT, build_folder
from catchment.controlplane.programs.compilation import Compilation, CompileError
from catchment.controlplane.programs.pipeline_config import PipelineConfig
from catchment.controlplane.topology import BY_PORTS, Switch, Target, Topology
from catchment.lock_file import locked
from catchment.processors import processors
from catchment.wire.generated.constants import MAX_WORKERS

# What an installed package, or another user's checkout, brings along; a switch has its programs in one folder that can
# be written.
_SHIPPED = ROOT / "build" / "programs" if OTHERS else Path(os.devnull)


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


def programs_of(topology: Topology) -> dict[str, PipelineConfig]:
    """The compiled program of every switch; each distinct one is compiled once."""
    return {name: program_for(switch) for name, switch in topology.switches.items()}


def is_compiled(switch: Switch) -> bool:
    """Whether `program_for` finds the program in the cache."""
    names = _names(Compilation(switch.target, switch.program.resolve(), _defines(switch)))
    return _is_done(cache_folder() / names[0]) or _shipped(names) is not None


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
        target, program, defines, externs, include: those of `Compilation`; paths may be relative.
        folder: takes the results, compiled afresh; the cache by default.

    Raises:
        CompileError: the source or the compiler is missing, the compiler refuses the program, or the folder cannot be
            written.
    """
    if not program.is_file():
        raise CompileError(f"no P4 program at {program}")
    compilation = Compilation(
        target,
        program.resolve(),
        defines,
        externs.resolve() if externs is not None else None,
        tuple(searched.resolve() for searched in include),
    )
    try:
        if folder is None:
            return _cached(compilation)
        folder.mkdir(parents=True, exist_ok=True)
        return compilation.run(folder.resolve())
    except OSError as error:
        own = "" if folder is not None else "; CATCHMENT_BUILD_DIR=FOLDER names another folder for what is compiled"
        where = f"{error.filename}: " if error.filename is not None else ""  # a disk that is full names no file
        raise CompileError(f"{program.name} is not compiled: {where}{error.strerror or error}{own}") from None


def _defines(switch: Switch) -> dict[str, str]:
    most = switch.workers in (BY_PORTS, MAX_WORKERS)  # a switch in no topology may get any number of ports
    fewer = {} if most else {"MAX_WORKERS": str(switch.workers)}
    tags = {"TAGS": "1"} if switch.tags else {}
    return {"LANES": str(switch.lanes), "SLOTS": str(switch.slots), **fewer, **tags}


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


def _cached(compilation: Compilation) -> PipelineConfig:
    name, *_ = names = _names(compilation)
    folder = cache_folder().resolve() / name
    if _is_done(folder):  # whoever has done it: the folder may be root's
        return compilation.results(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):  # two commands may want the same program
        if not _is_done(folder):
            if (shipped := _shipped(names)) is not None:
                shutil.copytree(shipped, folder, ignore=shutil.ignore_patterns("done", "lock"), dirs_exist_ok=True)
            else:
                compilation.run(folder)
            (folder / "done").touch()
    return compilation.results(folder)


def _names(compilation: Compilation) -> tuple[str, str]:
    """The names of a program's folder: compiled for these processors alone, and for any, as a package's are."""
    for_any = f"{compilation.program.stem}-{compilation.target}-{compilation.fingerprint()}"
    return (f"{for_any}-{processors()}" if compilation.target is Target.EMBEDDED else for_any), for_any


def _shipped(names: tuple[str, str]) -> Path | None:
    return next((folder for folder in (_SHIPPED / name for name in names) if _is_done(folder)), None)


def _is_done(folder: Path) -> bool:
    return (folder / "done").exists()
