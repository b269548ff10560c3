"""The disk under a training that nothing else holds up, for bench/optimizer.py.

Beside it, on the same files: fio where it is installed, else bare io_uring. Both sides go around the page cache, with
blocks of the same size, as many of them in flight a file, and the same share of reads. fio's buffers lie in huge pages
as the arena does: a block in 4 KiB pages has more pieces than one request of a virtual disk takes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.optimizer_network import UNLIMITED, TimedPort
from bench.optimizer_runs import READ, WRITTEN, arena_of, bytes_moved, store_in, table_of
from bench.report import Figure
from catchment.host import _optimizer
from catchment.host.optimizer import NodeOptions
from catchment.host.optimizer.store import UNIT, Store, StoreOptions, page_aligned
from catchment.host.optimizer.streaming import StreamingNode, StreamingOptions

_TABLE = table_of(32, 512 * UNIT)
_DEVICES = 2
_ROUNDS = 5
_STEPS = 5
_SECONDS = 1
_SHARE = READ / (READ + WRITTEN)
_HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
_REGISTERED = ("--fixedbufs=1", "--registerfiles=1")


def disk(folder: Path) -> list[Figure]:
    """Bytes per second of a training beside the raw limit, in turn, so that both see the same machine."""
    ours: list[float] = []
    peers: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        with store_in(folder, _TABLE, _DEVICES) as store:
            ours.append(_training(store))
            files = [folder / f"device{index}" for index in range(_DEVICES)]
            for name, rate in _raw_limits(files).items():
                peers.setdefault(name, []).append(rate)
    return [
        Figure("disk, steps of a training", median(ours) / 1e6, "MB/s", name, median(rates) / 1e6, goal)
        for (name, rates), goal in zip(peers.items(), (0.9, None), strict=False)
    ]


def _training(store: Store) -> float:
    """Bytes per second of all steps but the first two: then every place was written once, as fio's are."""
    marks: list[tuple[float, int]] = []
    node = StreamingNode(
        TimedPort(UNLIMITED, store.geometry.table),
        store,
        NodeOptions(1),
        StreamingOptions(arena=arena_of(store, 12)),
        on_pass=lambda _: marks.append((time.monotonic(), bytes_moved(store))),
    )
    node.run([True] * (_STEPS + 2))
    (begun, before), (ended, after) = marks[1], marks[-1]
    return (after - before) / (ended - begun)


def _raw_limits(files: Sequence[Path]) -> dict[str, float]:
    """Name of each measure, and bytes per second, reads and writes together. What the files held is lost."""
    if not shutil.which("fio"):
        return {"bare io_uring, same files and mix": _bare(files)}
    huge = [_fio(files, _HUGE), _fio(files, _HUGE, _REGISTERED)]
    return {"fio, same files and mix": max(huge), "fio with ordinary pages": _fio(files, {})}


def _fio(files: Sequence[Path], environment: Mapping[str, str], further: Sequence[str] = ()) -> float:
    like = StoreOptions()
    command = ["fio", "--output-format=json", "--group_reporting", "--thread", "--time_based", f"--runtime={_SECONDS}"]
    command += ["--rw=rw", f"--rwmixread={100 * _SHARE:.0f}", f"--bs={like.chunk}", f"--iodepth={like.depth}"]
    command += ["--ioengine=io_uring", "--direct=1", *further]
    for file in files:  # a job a file, as a device has a thread of its own
        command += [f"--name={file.name}", f"--filename={file}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **environment})
    job = json.loads(ran.stdout[ran.stdout.index("{") :])["jobs"][0]
    return float(job["read"]["bw_bytes"] + job["write"]["bw_bytes"])


def _bare(files: Sequence[Path]) -> float:
    like = StoreOptions()
    block, moved, begun, window = like.chunk, 0, time.monotonic(), 4 * like.depth
    with ExitStack() as exits:
        devices = []
        for index, path in enumerate(files):
            file = exits.enter_context(path.open("r+b"))
            native = _optimizer.Device(
                file.fileno(), uring=True, chunk=block, depth=like.depth, rate=0, index=index, faults=None
            )
            exits.callback(native.close)
            devices.append((native, page_aligned(window * block, resident=True), path.stat().st_size // block))
        at = 0
        while time.monotonic() - begun < _SECONDS:
            tickets = []
            for native, memory, blocks in devices:
                for place in range(window):
                    offset, part = (at + place) % blocks * block, memory[place * block : (place + 1) * block]
                    if place < window * _SHARE:
                        tickets.append(native.read(_optimizer.Lane.STATE_READ, offset, part))
                    else:
                        tickets.append(native.write(offset, part))
            for ticket in tickets:
                ticket.wait()
            at += window
            moved += len(tickets) * block
    return moved / (time.monotonic() - begun)
