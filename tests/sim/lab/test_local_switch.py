"""The switch of one machine's processes leaves nothing behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

from catchment.checkout import ROOT


def test_a_killed_local_switch_takes_its_switch_along() -> None:
    command = [sys.executable, "-m", "catchment.sim.lab.local_switch", "--ranks", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as service:
        try:
            assert service.stdout is not None
            assert b"socket" in service.stdout.readline()
            children = [task / "children" for task in Path(f"/proc/{service.pid}/task").iterdir()]
            (switch,) = [int(pid) for path in children for pid in path.read_text().split()]
            ended = os.pidfd_open(switch)
        finally:
            service.kill()
    assert select.select([ended], [], [], 60)[0], f"process {switch} goes on"
    os.close(ended)
