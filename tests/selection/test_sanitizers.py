"""Who is told to wait no longer for a long build, ends all of it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sanitizers import run_group

PATIENCE = 30.0


class ToldError(Exception):
    """What a timeout raises in who waits."""


@contextmanager
def tells(number: signal.Signals) -> Iterator[None]:
    """The signal raises an error."""

    def tell(*_: object) -> None:
        raise ToldError

    before = signal.signal(number, tell)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_what_a_process_started_ends_with_it_when_nobody_waits_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = tmp_path / "line"
    os.mkfifo(line)
    said: list[str] = []
    waited_for = threading.Event()
    communicate = subprocess.Popen.communicate

    def told_of(process: subprocess.Popen[str]) -> tuple[str, str]:
        waited_for.set()
        return communicate(process)

    monkeypatch.setattr(subprocess.Popen, "communicate", told_of)

    def listen() -> None:
        with line.open() as words:  # once the process has opened it, too
            said.append(words.readline())
            assert waited_for.wait(PATIENCE)  # it speaks before who started it has gone on to wait
            os.kill(os.getpid(), signal.SIGUSR1)
            said.append(words.read())  # comes to an end with the last who can write

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    with tells(signal.SIGUSR1), pytest.raises(ToldError):
        run_group(["sh", "-c", f"exec 3>{line}; sleep 100 & echo started >&3; wait"])
    listener.join(PATIENCE)
    assert said == ["started\n", ""]


def test_a_process_has_our_variables_and_its_own() -> None:
    done = run_group(["sh", "-c", 'echo "$HOW $PATH"; echo apart >&2; exit 3'], {"HOW": "well"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"well {os.environ['PATH']}\n", "apart\n")
