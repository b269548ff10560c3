"""What the files of a store give at most, for bench/optimizer.py: fio where it is installed, else bare io_uring."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from host import _optimizer
from host.optimizer.store import page_aligned

_SECONDS = 3
_BLOCK = 1 << 20
_DEPTH = 8


def raw_limit(files: Sequence[Path], read_share: float) -> tuple[str, float]:
    """Name of the measure, and bytes per second, reads and writes together in 1 MiB blocks, 8 in flight a file.

    fio is asked as it is, and with registered buffers and files; the faster counts. What the files held is lost.
    """
    if shutil.which("fio"):
        registered = ("--fixedbufs=1", "--registerfiles=1")
        return "fio, same files and mix", max(_fio(files, read_share), _fio(files, read_share, registered))
    return "bare io_uring, same files and mix", _bare(files, read_share)


def _fio(files: Sequence[Path], read_share: float, further: Sequence[str] = ()) -> float:
    command = ["fio", "--output-format=json", "--group_reporting", "--thread", "--time_based", f"--runtime={_SECONDS}"]
    command += ["--rw=rw", f"--rwmixread={100 * read_share:.0f}", f"--bs={_BLOCK}", f"--iodepth={_DEPTH}"]
    command += ["--ioengine=io_uring", "--direct=1", *further]
    for file in files:  # a job a file, as a device has a thread of its own
        command += [f"--name={file.name}", f"--filename={file}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(ran.stdout[ran.stdout.index("{") :])["jobs"][0]
    return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"])


def _bare(files: Sequence[Path], read_share: float) -> float:
    moved, begun, burst = 0, time.monotonic(), 30
    with ExitStack() as exits:
        devices = []
        for index, path in enumerate(files):
            file = exits.enter_context(path.open("r+b"))
            native = _optimizer.Device(
                file.fileno(), uring=True, chunk=_BLOCK, depth=_DEPTH, rate=0, index=index, faults=None
            )
            exits.callback(native.close)
            devices.append((native, page_aligned(burst * _BLOCK)))
        while time.monotonic() - begun < _SECONDS:
            tickets = []
            for native, memory in devices:
                for place in range(burst):
                    offset, block = place * _BLOCK, memory[place * _BLOCK : (place + 1) * _BLOCK]
                    if place < burst * read_share:
                        tickets.append(native.read(_optimizer.Lane.STATE_READ, offset, block))
                    else:
                        tickets.append(native.write(offset, block))
            for ticket in tickets:
                ticket.wait()
            moved += len(tickets) * _BLOCK
    return moved / (time.monotonic() - begun)
