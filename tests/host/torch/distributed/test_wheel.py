"""The package as strangers get it: in an empty environment, with no compiler, it runs the README's script."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
from crew import PATIENCE, ROOT

from catchment.checkout import NATIVE


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


@pytest.mark.slow
def test_an_installed_wheel_trains_without_a_compiler(tmp_path: Path) -> None:
    package = backend()
    package.compile_programs(NATIVE, package.BUILD / "compiled")
    staged = tmp_path / "staged"
    package.stage(staged, NATIVE, package.BUILD / "compiled" / "programs")
    made = [sys.executable, "setup.py", "-q", "bdist_wheel", "--dist-dir", str(tmp_path)]
    subprocess.run(made, cwd=staged, check=True, capture_output=True)
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
    run = subprocess.run(
        [binaries / "python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "train.py"],
        cwd=home,
        env={"PATH": str(binaries), "HOME": str(home), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count(str(site / "catchment")) == 2 and "compiling" not in run.stderr
    assert "the process group in Python" not in run.stderr
    assert len(re.findall(r"^\d+ \S+$", run.stdout, re.MULTILINE)) == 2
