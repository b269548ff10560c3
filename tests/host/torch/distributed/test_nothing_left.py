"""Nothing is left behind destroyed groups, nor a killed rank: no process, thread, descriptor, shared memory or file."""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crew import FOLDER, NATIVE, PYTHON, ROOT, environment
from leaver import TIMES

SIZE = 3
PATIENCE = 240.0


def processes_with(variable: str) -> set[int]:
    """Those that were started with this in their environment."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if variable.encode() in words:
            found.add(int(path.parent.name))
    return found


class Crew:
    """Ranks whose temporary folder nobody else has."""

    def __init__(self, folder: Path, temporary: Path, group: str) -> None:
        self.temporary = temporary
        self._mark = f"TMPDIR={self.temporary}"
        self.ranks = [
            subprocess.Popen(
                [sys.executable, str(FOLDER / "leaver.py"), str(rank), str(SIZE), str(folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=ROOT,
                env=environment({"TMPDIR": str(self.temporary), "CATCHMENT_PROCESS_GROUP": group}),
            )
            for rank in range(SIZE)
        ]

    def says(self, rank: int) -> dict[str, Any]:
        """The next line of a rank."""
        process = self.ranks[rank]
        assert process.stdout is not None
        assert select.select([process.stdout], [], [], PATIENCE)[0], f"rank {rank} says nothing"
        line = process.stdout.readline()
        assert line, process.communicate(timeout=PATIENCE)[1].decode()
        return dict(json.loads(line))

    def go_on(self, ranks: list[int]) -> None:
        """Let these ranks do what comes next."""
        for rank in ranks:
            stdin = self.ranks[rank].stdin
            assert stdin is not None
            stdin.write(b"\n")

    def nobody_else(self, ranks: list[int]) -> None:
        """No process but these ranks, and no file; soon: a switch ends by itself behind its last rank."""
        wanted = {self.ranks[rank].pid for rank in ranks}
        until = time.monotonic() + PATIENCE
        while (found := processes_with(self._mark)) != wanted:
            assert time.monotonic() < until, f"processes {found - wanted} go on"
            time.sleep(0.05)
        assert list(self.temporary.iterdir()) == []


@pytest.fixture(params=[NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
def crew(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Crew]:
    with tempfile.TemporaryDirectory(prefix="crew-") as temporary:  # short: sockets are below it
        made = Crew(tmp_path, Path(temporary), request.param)
        yield made
        for rank in made.ranks:
            rank.kill()
            rank.communicate()


@pytest.mark.sampled(4)
def test_nothing_is_left_behind_groups(crew: Crew) -> None:
    everybody, others = list(range(SIZE)), list(range(SIZE - 1))
    before = {rank: crew.says(rank) for rank in everybody}
    for _ in range(TIMES):
        assert {rank: crew.says(rank) for rank in everybody} == before
    crew.nobody_else(everybody)
    crew.go_on(everybody)
    assert {rank: crew.says(rank) for rank in others} == {rank: before[rank] for rank in others}
    assert crew.ranks[-1].wait(PATIENCE) == -9
    crew.nobody_else(others)
    crew.go_on(others)
    assert [crew.ranks[rank].wait(PATIENCE) for rank in others] == [0] * len(others)
