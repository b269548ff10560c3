"""Starts the ranks of a test as processes, and collects what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catchment.checkout import ROOT

NATIVE, PYTHON = "c++", "python"  # the two process groups
GROUPS = pytest.mark.parametrize("group", [NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
FOLDER = Path(__file__).parent
PATIENCE = 480.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A rank's process after its end."""

    rank: int
    code: int
    output: str
    complaint: str

    @property
    def said(self) -> list[dict[str, Any]]:
        """The lines of JSON that it printed."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


def environment(more: dict[str, str]) -> dict[str, str]:
    """A rank's: gloo stays on this machine; and nobody's settings of the switch get into a test."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("CATCHMENT_") or "DIR" in key}
    return own | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **more}


def run_ranks(
    commands: Sequence[Sequence[str]],
    settings: dict[str, str] | None = None,
    patience: float = PATIENCE,
    each: Sequence[Mapping[str, str]] = (),
) -> list[Ended]:
    """Run a process for each rank to its end, which may take `patience` seconds; `each`: settings of every rank."""
    own = environment(settings or {})
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**own, **(each[rank] if each else {})},
        )
        for rank, command in enumerate(commands)
    ]
    ended = []
    try:
        for rank, process in enumerate(processes):
            output, complaint = process.communicate(timeout=patience)
            ended.append(Ended(rank, process.returncode, output, complaint))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return ended


def run_cases(
    module: Path,
    size: int,
    store: Path,
    timeout: float = 60.0,
    *,
    group: str,
    cases: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
    """What went wrong in each case, of all unless some are given: one text per rank that failed."""
    chosen = [",".join(cases)] if cases else []
    script = str(FOLDER / "member.py")
    commands = [[script, str(module), str(rank), str(size), str(store), str(timeout), *chosen] for rank in range(size)]
    failures: dict[str, list[str]] = {"end": []}
    for ended in run_ranks(commands, {"CATCHMENT_PROCESS_GROUP": group, **(settings or {})}):
        for said in ended.said:
            problem = [f"rank {ended.rank}: {said['error']}"] if "error" in said else []
            failures.setdefault(said["case"], []).extend(problem)
        if ended.code:
            failures.setdefault("end", []).append(f"rank {ended.rank}, code {ended.code}: {ended.complaint[-3000:]}")
    return failures
