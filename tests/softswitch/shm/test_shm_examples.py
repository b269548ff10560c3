"""The peers of docs/reference/shared-memory.md do what the page says, in C and in Python, and outlive the switch."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from catchment.checkout import ROOT
from catchment.softswitch.shm import Port

if TYPE_CHECKING:
    from shm_switch import Launch

pytest_plugins = ["shm_switch"]

PAGE = (ROOT / "docs" / "reference" / "shared-memory.md").read_text("utf-8")
SHM = ROOT / "softswitch" / "shm"
LIBRARY = ROOT / "build" / "native" / "softswitch" / "shm"


def example(language: str, beginning: str) -> str:
    """The page's program that begins so."""
    (program,) = re.findall(rf"```{language}\n({re.escape(beginning)}.*?)```", PAGE, re.DOTALL)
    return str(program)


def c_peer(folder: Path) -> list[str]:
    source, binary = folder / "echo.c", folder / "echo"
    source.write_text(example("c", "#include"))
    subprocess.run(
        [
            "cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", str(source), "-o", str(binary),
            f"-I{SHM / 'include'}", f"-L{LIBRARY}", "-lcatchment_shm", f"-Wl,-rpath,{LIBRARY}",
        ],
        check=True,
    )  # fmt: skip
    return [str(binary)]


def python_peer(_: Path) -> list[str]:
    return [sys.executable, "-c", example("python", "import sys")]


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def echoed(port: Port, frame: bytes) -> bool:
    """The frame comes back; the first ones may be early for a peer that is still attaching."""
    for _ in range(600):
        port.send(frame, timeout=60.0)
        if frame in port.receive(timeout=0.2):
            return True
    return False


@pytest.mark.parametrize("make", [c_peer, python_peer])
def test_the_example_echoes(make: object, launch: Launch, folder: Path, tmp_path: Path) -> None:
    assert callable(make)
    switch = launch()
    with running([*make(tmp_path), str(folder / "2")]) as peer, Port.attach(folder / "1", timeout=60.0) as one:
        assert echoed(one, bytes(range(200)))
        switch.kill()
        launch()
        one.wait_attached(timeout=60.0)
        assert echoed(one, bytes(range(100)))
        assert peer.poll() is None
