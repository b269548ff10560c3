"""The tests of `make check`: they start no process but the preprocessor and git, need no compiler and no root.

A test of these files that starts another process fails, so that the tier stays what it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

ALLOWED = {"cpp", "git"}
# Globs below tests/; what begins with ! is left out again.
FILES = (
    "cli/test_completion.py", "cli/test_controller_verbs.py", "cli/test_kept_by_hand.py", "common/*", "controlplane/*",
    "!controlplane/test_attacks_*.py", "!controlplane/test_job_store.py",
    "!controlplane/test_key_renewal.py", "!controlplane/test_live_store.py",
    "!controlplane/test_metrics*.py", "!controlplane/test_networks.py", "!controlplane/test_sums_under_faults.py",
    "!controlplane/test_term_keys*.py",
    "host/collectives/test_rail_split.py", "host/collectives/test_ring_links.py",
    "host/collectives/test_silence_timer.py",
    "host/glm/*", "!host/glm/test_glm_weights.py", "host/optimizer/*", "!host/optimizer/test_crashes.py",
    "!host/optimizer/test_read_only.py",
    "!host/optimizer/test_sharded_checkpoints.py", "!host/optimizer/test_store.py", "host/test_numbers.py",
    "host/test_slot_ring.py", "host/test_state_machines.py", "host/test_transfer.py", "host/test_udp_port.py",
    "p4src/test_protocol.py", "p4src/test_scenarios.py", "p4src/test_switch_model.py", "sim/golden/*",
    "sim/performance/*", "!sim/performance/test_performance_against_cosim.py",
    "!sim/performance/test_software_hosts.py", "!sim/performance/test_step_sweeps.py",
    "!sim/performance/test_sweep_plots.py",
    "sim/training/*", "sim/world/*", "softswitch/compiler/*", "structure/*",
    "wire/test_glm_numbers.py", "wire/test_udp_frame.py",
)  # fmt: skip
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}


class _Guard:
    """What the audit hook looks at: a hook can never be taken away again."""

    on = False


@cache
def is_quick(name: str) -> bool:
    """Whether a test file, given below tests/, belongs to `make check`."""
    path, found = PurePosixPath(name), False
    for glob in FILES:
        if path.match(glob.removeprefix("!")):
            found = not glob.startswith("!")
    return found


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if _Guard.on and event in _STARTS:
        program = Path(str(arguments[0])).name if event == "subprocess.Popen" else event
        if program not in ALLOWED:
            raise RuntimeError(
                f"a test of `make check` starts {program}: take its file out of tests/selection/quick.py"
            )


sys.addaudithook(_refuse)


@contextmanager
def guard() -> Iterator[None]:
    """Refuse to start processes inside the block."""
    _Guard.on = True
    try:
        yield
    finally:
        _Guard.on = False
