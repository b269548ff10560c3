"""An unmodified p4runtime-shell drives the switch, from its own environment."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from server_programs import Program

from catchment.controlplane import shell
from catchment.softswitch.process import SwitchProcess

SESSIONS = Path(__file__).with_name("shell_sessions.py")


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "session",
    [
        "entries_of_every_kind",
        "default_entry",
        "errors_are_printed_one_by_one",
        "counters",
        "multicast_and_clone",
        "a_second_shell_reads_the_p4info_and_is_told_it_is_a_backup",
    ],
)
def test_session(start: Callable[..., SwitchProcess], kinds: Program, session: str) -> None:
    process = start(device_id=3)
    command = [shell.python(), SESSIONS, session, process.address, kinds.p4info_file, kinds.shared_object]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.endswith("done\n")
