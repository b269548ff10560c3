"""The package as strangers get it: in an empty environment, with no compiler, it runs the README's script."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from crew import PATIENCE, ROOT

from catchment.checkout import NATIVE

DISTRIBUTIONS = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "grpc": "grpcio",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
"""Packages of modules, where their names differ."""
ELSEWHERE = {"IPython", "mininet", "p4runtime_sh"}
"""Modules of Debian's packages, and of an environment of their own."""


def backend() -> ModuleType:
    """The build backend."""
    spec = importlib.util.spec_from_file_location("package", ROOT / "tools" / "package.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sdist_holds_what_is_under_version_control(tmp_path: Path) -> None:
    name = backend().build_sdist(str(tmp_path))
    with tarfile.open(tmp_path / name) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert set(members) == {path for path in listed.split("\0") if path and os.path.lexists(ROOT / path)} | {"PKG-INFO"}
    assert members["catchment/host"].issym() and members["catchment/host"].linkname == "../host"


def test_what_a_wheel_holds(tmp_path: Path) -> None:
    """The wheel holds what this checkout has built; the compiled program is a stand-in: a real one takes a minute."""
    package = backend()
    program = tmp_path / "programs" / f"0123-{package.MARCH}"
    program.mkdir(parents=True)
    for name in ("done", "program.so"):
        (program / name).touch()
    package.stage(tmp_path / "staged", NATIVE, program.parent)
    made = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(tmp_path)]
    subprocess.run(made, cwd=tmp_path / "staged", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.split("-")[-1].startswith("linux_")  # for this platform, and not for any
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (facts,) = (archive.read(name).decode() for name in names if name.endswith("dist-info/METADATA"))
        (commands,) = (archive.read(name).decode() for name in names if name.endswith("entry_points.txt"))
    built = "catchment/build/native"
    wanted = {
        "catchment/py.typed",
        "catchment/__init__.py",
        "catchment/host/_native.pyi",
        "catchment/include/catchment_collectives.h",
        "catchment/include/catchment_shm.h",
        "catchment/p4src/luwu.p4",
        "catchment/wire/generated/wire.hpp",
        "catchment/build/programs/0123/done",
        "catchment/build/programs/0123/program.so",
        f"{built}/softswitch/server/catchment-switch",
        f"{built}/softswitch/shm/libcatchment_shm.so",
        f"{built}/host/libcatchment_collectives.so",
    }
    assert not wanted - names
    of_host = [f"host/{module}" for module in ("_native", "_collectives", "_optimizer", "_glm", "_torch_group")]
    for module in (*of_host, "sim/world/_world", "sim/performance/_performance"):
        assert any(name.startswith(f"{built}/{module}.") for name in names), module
    assert not [name for name in names if re.search(r"/tests?/|/\.|\.cpp\.o$|__pycache__", name)]
    assert {name.split("/")[0].split("-")[0] for name in names} == {"catchment"}  # one import package
    assert "Requires-Dist: torch" in facts and "catchment-local-switch = " in commands
    for header in wanted & {name for name in names if name.endswith(".h")}:
        include = f"#include <{Path(header).name}>\nint main(void) {{ return 0; }}\n"
        folder = str(tmp_path / "staged" / "catchment" / "include")
        subprocess.run(["cc", "-x", "c", "-fsyntax-only", "-I", folder, "-"], input=include, text=True, check=True)


def _distribution(module: str) -> str:
    top = ".".join(module.split(".")[: 2 if module.startswith("google.") else 1])
    return DISTRIBUTIONS.get(top, top)


def _needed(package: ModuleType) -> set[str]:
    """The distributions whose modules a wheel's own import, at the top of a file or in a function."""
    links = {path.name for path in (ROOT / "catchment").iterdir() if path.is_symlink()} | {"catchment"}
    modules: set[str] = set()
    for path in (ROOT / source for source in package.sources() if source.parts[0] in links and source.suffix == ".py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module)
    ours = sys.stdlib_module_names | ELSEWHERE | {"catchment"}
    return {_distribution(module) for module in modules if module.split(".")[0] not in ours}


def _declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", requirement)[0].lower() for requirement in requirements}


def test_a_wheel_depends_on_all_that_it_imports() -> None:
    """The tests' own environment has everything: in an empty one only what is declared is there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert _declared(project["dependencies"]) == _needed(backend())


def test_a_wheel_is_built_where_only_what_it_asks_for_is_there() -> None:
    """`pip wheel` builds in an environment of its own, and there the switch program is compiled."""
    asked = _declared(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"])
    loaded = "import sys, catchment.sim.lab.local_switch, catchment.softswitch.server.codegen.dump_descriptors"
    run = subprocess.run(
        [sys.executable, "-c", f"{loaded}\nprint(*sys.modules, sep='\\n')"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    used = {_distribution(module) for module in run.stdout.split()} & _needed(backend())
    assert used - {"grpcio", "protobuf"} <= asked and "grpcio-tools" in asked  # which brings these two


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[list[str]], str]:
    """The commands that compile a wheel's native parts, of which only the first is run, and the rules that it makes."""
    package = backend()
    folder = tmp_path_factory.mktemp("configured")
    ran: list[list[str]] = []
    whole = subprocess.run

    def run(command: list[str], **options: Any) -> Any:
        ran.append(command)
        return None if "--build" in command else whole(command, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package.subprocess, "run", run)
        package.compile_native(folder)
    assert set(package.TARGETS) <= set(ran[1])
    return ran, (folder / "build.ninja").read_text()


def test_a_wheel_is_built_for_any_processor(configured: tuple[list[list[str]], str]) -> None:
    ran, rules = configured
    assert [command[1] for command in ran] == ["-S", "--build"]
    flags = set(re.findall(r"-m(?:arch|tune|cpu)=\S+", rules))
    assert "-march=native" not in flags
    assert flags <= {"-march=x86-64-v3", "-march=x86-64-v4"}  # the update kernels, which are chosen as they run


def test_python_finds_what_pip_brings_while_a_wheel_is_built(configured: tuple[list[list[str]], str]) -> None:
    """The environment that `pip wheel` builds in is one by PYTHONPATH alone: nothing may put another in its place."""
    _, rules = configured
    assert set(re.findall(r"PYTHONPATH=([^:\s]*)", rules)) == {"path_list_prepend"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_wheel_of_the_sdist_trains_without_a_compiler(tmp_path: Path) -> None:
    """The sources alone are enough: unpacked, built, installed into an empty environment, and run there by torchrun."""
    package = backend()
    with tarfile.open(tmp_path / package.build_sdist(str(tmp_path))) as archive:
        archive.extractall(tmp_path / "sources", filter="tar")
    (sources,) = (tmp_path / "sources").iterdir()
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(build, cwd=sources, check=True, timeout=3000)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    binaries, (site,) = tmp_path / "env" / "bin", (tmp_path / "env" / "lib").glob("python*/site-packages")
    subprocess.run([binaries / "pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    # What it depends on, without the downloads: this environment's packages, after its own.
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    code = re.search(r"```python\n(import torch\n.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert code is not None
    home = tmp_path / "home"
    home.mkdir()
    (home / "train.py").write_text(code[1] + "import catchment\nprint(catchment.__path__[0])\n")
    # Ranks do not buffer under torchrun, and would write into each other's lines: each has a file.
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--log-dir", "logs", "--redirects", "3"]
    run = subprocess.run(
        [binaries / "python", *torchrun, "--nproc-per-node", "2", "train.py"],
        cwd=home,
        env={"PATH": str(binaries), "HOME": str(home), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    said = [log.read_text("utf-8").splitlines() for log in (home / "logs").rglob("stdout.log")]
    complaints = run.stderr + "".join(log.read_text("utf-8") for log in (home / "logs").rglob("stderr.log"))
    assert run.returncode == 0, complaints
    assert sorted(trained.split()[0] for trained, _ in said) == ["0", "1"]
    assert [where for _, where in said] == [str(site / "catchment")] * 2
    assert "compiling" not in complaints and "the process group in Python" not in complaints
