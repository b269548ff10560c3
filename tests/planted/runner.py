"""Plants a bug in one file and runs the test that must fail over it, whatever language it is in.

The changed file is laid over its original in a mount namespace of the test's own, so that nobody else sees it and every
path stays what it is. A bug in C++ is built first, in a copy of the build folder that lies over the original likewise;
one in SystemVerilog is built by its test, in an empty folder of models. P4 is compiled by its test and kept by content.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from catchment.checkout import NATIVE, ROOT

NATIVE_SOURCES = {".cpp", ".hpp", ".h"}
HARDWARE_SOURCES = {".sv", ".svh"}
MODELS = ROOT / "build" / "rtl"
"""What Verilator built; cocotb's part of it is kept by dates, which a laid-over file upsets."""
DOES_NOT_COMPILE, ENDLESS = 99, 124
"""Return codes of a run besides pytest's: C++ that does not build, and tests that took too long."""
FATAL = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV)
CRASHES = {-fatal for fatal in FATAL} | {128 + fatal for fatal in FATAL}
"""Return codes of tests whose process the bug has crashed, which every tier of tests reports as a failure."""
OUT_OF_TIME = "+ Timeout +"
"""What pytest-timeout says when it ends the process of a test that a bug keeps waiting, which is a failure, too."""
DOES_NOT_BUILD = {
    **dict.fromkeys(HARDWARE_SOURCES, ("verilate.RtlError: ", "synth.SynthError: ")),
    ".p4": ("CompileError: ",),
}
"""What pytest, but no docstring that it shows, says of a test whose hardware or P4 program cannot be built."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A row of a list of bugs.

    Attributes:
        file: path below the root.
        old: text that is there once. new: what it becomes.
        test: the test that must fail, below tests/.
    """

    file: str
    old: str
    new: str
    test: str

    def __str__(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())[:40]}"

    @property
    def test_file(self) -> str:
        """The file of its test, below tests/."""
        return self.test.partition("::")[0]

    def planted(self) -> str:
        """The text of the file with the bug in it."""
        text = (ROOT / self.file).read_text("utf-8")
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times: {self.old}"
        return text.replace(self.old, self.new)


def read_bugs(*lists: Path) -> Iterator[Bug]:
    """The rows of lists of bugs."""
    for path in lists:
        for row in tomllib.loads(path.read_text("utf-8"))["bug"]:
            yield Bug(**row)


def can_plant() -> bool:
    """Whether this process may make mount namespaces; root may, in most containers."""
    command = ["unshare", "--mount", "--propagation", "private", "mount", "--bind", "/dev/null", "/dev/null"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def run_changed(
    file: str,
    text: str,
    tests: Sequence[str],
    folder: Path,
    *,
    marks: str = "",
    targets: Sequence[str] = (),
    seconds: int = 0,
) -> subprocess.CompletedProcess[str]:
    """Run tests with another text in the place of a file; the return code is pytest's, or one of those above.

    Args:
        file: below the root.
        tests: below the root.
        folder: takes the changed file and what is built of it.
        marks: pytest's expression for those of the tests' cases that run; all if empty.
        targets: of CMake, that a change of C++ builds, all if empty.
        seconds: after which the tests are ended; 0: no limit.
    """
    changed, suffix = folder / Path(file).name, Path(file).suffix
    changed.write_text(text, "utf-8")
    shutil.copymode(ROOT / file, changed)
    steps = [_over(changed, ROOT / file)]
    if suffix in NATIVE_SOURCES:
        build = folder / "native"
        shutil.copytree(NATIVE, build, symlinks=True)
        cmake = [str(Path(sys.executable).with_name("cmake")), "--build", str(NATIVE)]
        command = shlex.join([*cmake, *(["--target", *targets] if targets else [])])
        steps += [_over(build, NATIVE), f"{command} || exit {DOES_NOT_COMPILE}"]
    if suffix in HARDWARE_SOURCES:
        models = folder / "models"
        models.mkdir()
        MODELS.mkdir(parents=True, exist_ok=True)
        steps.append(_over(models, MODELS))
    run = [
        "timeout",
        "--kill-after=10",
        str(seconds),
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
    ]
    steps.append(f"exec {shlex.join([*run, '-m', marks, *tests])}")
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "set -e\n" + "\n".join(steps)],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def complaint(bug: Bug, folder: Path, marks: str = "") -> str:
    """Plant the bug: nothing if its test fails over it, as a test and not because nothing builds or imports."""
    result = run_changed(bug.file, bug.planted(), [f"tests/{bug.test}"], folder, marks=marks)
    return objection(bug, result.returncode, result.stdout + result.stderr)


def objection(bug: Bug, code: int, said: str) -> str:
    """What speaks against a run's having noticed the bug; nothing if a test failed, waited too long or crashed.

    Args:
        bug: the one that was planted.
        code: of the run, as of a process of Python's: a signal that ended it is below 0, or above 128.
        said: by the run.
    """
    unbuilt = DOES_NOT_BUILD.get(Path(bug.file).suffix, ())
    if code == DOES_NOT_COMPILE or any(words in said for words in unbuilt):
        return f"it does not build, which is no test:\n{said}"
    if code in CRASHES:
        return ""
    if code != 1:
        return f"{bug.test} did not notice the bug:\n{said}"
    return "" if "1 failed" in said or OUT_OF_TIME in said else f"no test failed:\n{said}"


def check(bug: Bug, folder: Path) -> None:
    """Fail unless the bug's test fails over it."""
    said = complaint(bug, folder)
    assert not said, said


def _over(upper: Path, lower: Path) -> str:
    return f"mount --bind {shlex.quote(str(upper))} {shlex.quote(str(lower))}"
