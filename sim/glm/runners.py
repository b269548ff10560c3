"""Which runner trains: C++ workers or simulated hardware, and where they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum

from catchment.host.glm import GlmError, LocalRunner, Prepared, Runner
from catchment.sim.glm.labs import LabKind
from catchment.sim.glm.network_runner import NetworkRunner, OnProgress
from catchment.wire.generated.glm_numbers import BANKS

_TIMEOUT = 120.0
"""Seconds; a machine may be that busy."""


class WorkerKind(StrEnum):
    """What trains."""

    SOFTWARE = "software"
    """The C++ worker."""
    RTL = "rtl"
    """The hardware of rtl/glm, simulated."""


def default_lab() -> LabKind:
    """Real packets where that is possible."""
    return LabKind.MININET if os.geteuid() == 0 else LabKind.SHM


def make_runner(
    worker: WorkerKind,
    lab: LabKind | None,
    prepared: Prepared,
    *,
    drop: float = 0.0,
    faults: str = "",
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    on_notice: Callable[[str], None] | None = None,
) -> Runner:
    """The runner for these choices; `lab` is of software workers, None: `default_lab`; `timeout` too, None: 120 s.

    Raises:
        GlmError: they do not go together.
    """
    if not 0 <= drop < 1:
        raise GlmError(f"a share of {drop} of the frames", "give at least 0 and below 1")
    if faults and (worker == WorkerKind.RTL or (lab or default_lab()) != LabKind.MININET):
        raise GlmError(f"faults {faults!r} of ports", "they are the Mininet lab's: take --lab mininet, or --drop")
    if timeout is not None and not 0 < timeout < float("inf"):
        raise GlmError(f"a timeout of {timeout} s", "give a positive number of seconds")
    if worker == WorkerKind.RTL:
        if timeout is not None:
            raise GlmError(
                "--timeout with simulated hardware, which counts clocks and gives up by them", "leave it out"
            )
        _check_hardware(lab, prepared)
        from catchment.sim.glm.rtl_runner import RtlRunner  # noqa: PLC0415  only where hardware is wanted

        return RtlRunner(on_progress, loss=drop, on_notice=on_notice)
    lab = lab or default_lab()
    if lab == LabKind.LOCAL:
        if drop:
            raise GlmError("no frames are lost in one process", "take --lab shm or --lab mininet")
        return LocalRunner()
    return NetworkRunner(lab, loss=drop, faults=faults, timeout=timeout or _TIMEOUT, on_progress=on_progress)


def _check_hardware(lab: LabKind | None, prepared: Prepared) -> None:
    if prepared.training.micro_batch != BANKS:
        raise GlmError(f"micro-batches of {prepared.training.micro_batch} samples", f"the hardware has {BANKS} banks")
    if lab is not None:
        raise GlmError(
            f"--lab {lab} with simulated hardware, whose switch is in the same process",
            "leave --lab out, or take --worker software",
        )
