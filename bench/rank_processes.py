"""Processes of torch's ranks that take an order a line and answer in lines, gloo's traffic on the limited links."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, final

from bench.limited_hosts import LIMITED
from catchment.checkout import ROOT


@final
class RankProcesses:
    """One process for each rank; every process has said a line when the constructor returns."""

    def __init__(self, module: str, arguments: Sequence[Sequence[str]], places: Sequence[Sequence[str]]) -> None:
        """Start the processes.

        Args:
            module: what each rank runs, as `python -m` takes it.
            arguments: its arguments, by rank.
            places: what runs a command where the rank is, by rank.

        Raises:
            SystemExit: a rank ended.
        """
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": LIMITED, "OMP_NUM_THREADS": "1"}
        self._processes = []
        try:
            for own, place in zip(arguments, places, strict=True):
                command = [*place, sys.executable, "-W", "ignore", "-m", module, *own]
                self._processes.append(
                    subprocess.Popen(
                        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
                    )
                )
            self._lines()
        except BaseException:
            self.close()
            raise

    def run(self, orders: Sequence[Any]) -> list[str]:
        """Give each rank its order, as JSON; return the line that each answers.

        Raises:
            SystemExit: a rank ended.
        """
        for process, order in zip(self._processes, orders, strict=True):
            assert process.stdin is not None
            print(json.dumps(order), file=process.stdin, flush=True)
        return self._lines()

    def _lines(self) -> list[str]:
        lines = []
        for rank, process in enumerate(self._processes):
            assert process.stdout is not None
            lines.append(process.stdout.readline())
            if not lines[-1]:
                raise SystemExit(f"rank {rank} failed")
        return lines

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.communicate()
