"""A page as a script: its titled blocks are files, its console blocks are commands with what they print.

A console block has commands after `$ ` (continued on lines that begin with `> `), and below each what it prints, of
which a page may leave lines out. They are compared loosely: numbers may differ, words may not, `...` is anything.
Blocks of language `text` are drawings. A page that takes more than a few seconds says `<!-- run: slow -->`, one that
needs root and Mininet `<!-- run: network -->`, and one that needs interfaces of its own `<!-- run: interfaces -->`.
A block whose programs nothing here installs has `<!-- needs: PROGRAM ... -->` above it: where one of them is not on the
PATH the block is left out, and checked as far as it can be (`page_check.py`).
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from catchment.checkout import ROOT

_FENCE = re.compile(r"(?:^ *<!-- needs: ([^\n]+) -->\n)?^( *)```(\w*)([^\n]*)\n(.*?)^\2```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_NEEDS = re.compile(r"^<!-- run: (\w+) -->$", re.MULTILINE)
_ENDING = 30.0
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|\b[0-9a-f]{8,}\b")


@dataclass(slots=True)
class Command:
    """One command of a page, the lines that the page shows below it, and the programs that its block needs."""

    text: str
    shown: list[str] = field(default_factory=list)
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """The programs that it needs and that are not on the PATH."""
        return [program for program in self.needs if shutil.which(program) is None]


@dataclass(frozen=True, slots=True)
class File:
    """A block that the reader saves under a name."""

    name: str
    text: str


class PageError(Exception):
    """A page does not do what it says."""


def needs(page: Path) -> set[str]:
    """What a page says that it takes to run it."""
    return set(_NEEDS.findall(page.read_text("utf-8")))


def steps_of(page: Path) -> list[File | Command]:
    """The steps of a page in order.

    Raises:
        PageError: a block is neither a file, nor commands, nor a drawing.
    """
    steps: list[File | Command] = []
    for programs, indent, language, rest, body in _FENCE.findall(page.read_text("utf-8")):
        lines = [line.removeprefix(indent) for line in body.splitlines()]
        title = _TITLE.search(rest)
        if title:
            steps.append(File(title[1], "\n".join(lines) + "\n"))
        elif language == "console":
            steps += _commands(page, lines, tuple(programs.split()))
        elif language != "text":
            raise PageError(f"{page.name}: a block of {language or 'no language'} has no title, so nothing runs it")
    return steps


def _commands(page: Path, lines: list[str], programs: tuple[str, ...]) -> list[Command]:
    found: list[Command] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(Command(line[2:], needs=programs))
        elif not found:
            raise PageError(f"{page.name}: {line!r} stands before the first command of its block")
        elif line.startswith("> "):
            found[-1].text += "\n" + line[2:]
        elif line.strip():
            found[-1].shown.append(line)
    return found


def run(page: Path, folder: Path, timeout: float) -> None:
    """Do in `folder` what a page tells its reader to do.

    Raises:
        PageError: a command failed, or printed other words than the page shows.
    """
    steps = [step for step in steps_of(page) if isinstance(step, File) or not step.missing]
    mark = uuid.uuid4().hex
    script = ["exec 2>&1"]
    shell = ["bash", "-c"]
    if "interfaces" in needs(page):
        shell = ["unshare", "--net", "bash", "-c"]
        script.append("ip link set lo up")
    if "network" in needs(page):
        script.append("trap 'catchment net down > /dev/null 2>&1' EXIT")
    staged = folder.parent / f"{folder.name}.files"
    staged.mkdir()
    for number, step in enumerate(steps):
        if isinstance(step, File):
            (staged / str(number)).write_text(step.text, "utf-8")
            target = shlex.quote(step.name)
            script.append(f'mkdir -p "$(dirname {target})" && cp {shlex.quote(str(staged / str(number)))} {target}')
        else:
            script.append(f"{step.text}\n_status=$?; echo; echo {mark} {number} $_status; [ $_status = 0 ] || exit 1")
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "CATCHMENT": str(ROOT),
        "CATCHMENT_RUN_DIR": str(folder.parent / f"{folder.name}.run"),
        "CATCHMENT_STATE_DIR": str(folder.parent / f"{folder.name}.state"),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
    }
    output = folder.parent / f"{folder.name}.out"
    with output.open("wb") as to:
        reader = subprocess.Popen(
            [*shell, "\n".join(script)],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=to, start_new_session=True,
        )  # fmt: skip
        try:
            reader.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise PageError(f"{page.name} takes longer than {timeout} s:\n{output.read_text('utf-8')}") from error
        finally:
            _end(reader)
    _judge(page, steps, output.read_text("utf-8"), mark)


def _end(reader: subprocess.Popen[bytes]) -> None:
    """End a page's shell, which then runs its trap, and what it has left in the background."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(reader.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            reader.wait(_ENDING)


def _judge(page: Path, steps: list[File | Command], said: str, mark: str) -> None:
    for number, step in enumerate(steps):
        if isinstance(step, File):
            continue
        text, found, said = said.partition(f"{mark} {number} ")
        status, _, said = said.partition("\n")
        if not found or status != "0":
            raise PageError(f"{page.name}: `{step.text}` failed ({status or 'no end'}):\n{text}")
        missing = missing_line(step.shown, text.splitlines())
        if missing is not None:
            raise PageError(f"{page.name}: `{step.text}` did not print {missing!r}, but:\n{text}")


def missing_line(shown: list[str], printed: list[str]) -> str | None:
    """The first line of `shown` that is not in `printed`, where both have the same order; None: all are."""
    rest = iter([_loose(line) for line in printed])
    for line in shown:
        pattern = re.sub(r"([\[?*])", r"[\1]", _loose(line)).replace("...", "*")
        if not any(fnmatch.fnmatchcase(candidate, pattern) for candidate in rest):
            return line
    return None


def _loose(line: str) -> str:
    """A line without its numbers, its rulers and the width of its gaps."""
    return " ".join(_NUMBER.sub("0", line).split())
