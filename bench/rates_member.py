"""The rank of `bench.rates`, in a process of its own: sums one array after the other until its input ends.

Its argument is a JSON object: `description` of the job, `port` of the host. It prints a line when it has a first sum.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from catchment.checkout import ROOT
from catchment.host.collectives import Communicator

ELEMENTS = 1 << 20
PENDING = 4
PATIENCE = 60.0
Start = Callable[..., "subprocess.Popen[str]"]


def _here(_: str, command: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(command, **options)


@contextmanager
def summing(description: Mapping[str, Any], port: str, start: Start = _here) -> Iterator[None]:
    """A process that sums, for as long as the context lasts.

    Args:
        description: what the host is told of the job.
        port: of the host.
        start: starts a command on a host; here unless given.

    Raises:
        SystemExit: the rank failed.
    """
    command = [sys.executable, "-m", __name__, json.dumps({"description": description, "port": port})]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    with start(description["host"], command, **pipes) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit("the rank failed")
            yield
        finally:
            process.kill()


def main() -> None:
    """Run the task of the first argument."""
    task = json.loads(sys.argv[1])
    ended = threading.Event()

    def notice() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=notice, daemon=True).start()
    with Communicator.of_job(task["description"], port=task["port"], timeout=PATIENCE) as rank:
        arrays = [np.ones(ELEMENTS, np.float32) for _ in range(PENDING)]
        rank.all_reduce(arrays[0][:1]).wait()
        print("sums", flush=True)
        works = [rank.all_reduce(array) for array in arrays]
        for at in itertools.cycle(range(PENDING)):
            works[at].wait()
            if ended.is_set():
                break
            works[at] = rank.all_reduce(arrays[at])


if __name__ == "__main__":
    main()
