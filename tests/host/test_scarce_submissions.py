"""A kernel that does not take all that a device submits to io_uring: nothing waits for ever, nothing moves twice."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE = 60.0
SOURCE = Path(__file__).with_name("scarce_submissions.cpp")
PAGES = 64
WRITES_AND_READS = f"""
import json, os, sys
import numpy as np
from catchment.host import _optimizer
PAGE = 4096
given = np.frombuffer(os.urandom({PAGES} * PAGE), np.uint8).copy()
found = np.zeros_like(given)
pages = [slice(start, start + PAGE) for start in range(0, given.size, PAGE)]
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
device = _optimizer.Device(descriptor, uring=True, chunk=PAGE, depth=4, rate=0.0, index=0, faults=None)
written = [ticket.wait() for ticket in [device.write(page.start, given[page]) for page in pages]]
lane = _optimizer.Lane.STATE_READ
read = [ticket.wait() for ticket in [device.read(lane, page.start, found[page]) for page in pages]]
alone = device.sync().wait()
device.close()
print(json.dumps([written, read, alone, bool(np.array_equal(given, found))]))
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shim") / "submissions.so"
    linked = ["-Wl,--no-as-needed", "-luring"]  # what the shim calls comes from the library behind it
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-o", made, SOURCE, *linked], check=True)
    return made


def outcome(shim: Path, mode: str, file: Path) -> tuple[list[int], list[int], int, bool]:
    """Error numbers of writes, of reads and of a sync, and whether the reads found what was written."""
    environment = {**os.environ, "LD_PRELOAD": str(shim), "SCARCE_SUBMISSIONS": mode}
    command = [sys.executable, "-c", WRITES_AND_READS, str(file)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=True)
    written, read, alone, same = json.loads(run.stdout)
    return written, read, alone, same


@pytest.mark.parametrize("mode", ["none", "one"])
def test_what_the_kernel_does_not_take_at_once_it_takes_later(shim: Path, mode: str, tmp_path: Path) -> None:
    assert outcome(shim, mode, tmp_path / "file") == ([0] * PAGES, [0] * PAGES, 0, True)


def test_what_the_kernel_never_takes_fails(shim: Path, tmp_path: Path) -> None:
    written, read, alone, same = outcome(shim, "never", tmp_path / "file")
    assert set(written) == {0, errno.EBADF}
    assert set(read) == {errno.EBADF}
    assert alone == errno.EBADF
    assert not same
