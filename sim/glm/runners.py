"""Which runner trains: C++ workers or simulated hardware, and where they are."""

from __future__ import annotations

import importlib
import os
from enum import StrEnum

from host.glm import GlmError, LocalRunner, Prepared, Runner
from host.glm.numbers import BANKS
from sim.glm.labs import LabKind
from sim.glm.network_runner import NetworkRunner, OnProgress

RTL_RUNNER = "sim.glm.rtl_runner"
"""Module with `RtlRunner(*, on_progress)`, a `host.glm.Runner` whose workers are rtl/glm in co-simulation.

It gets each worker's samples by `host.glm.weave.weave(prepared.encoded.columns(part).planes(), prepared.shares)` and
`prepared.labels`, the steps by `prepared.steps`, and gives an `Epoch` after each: the weights of all features in
order, and what it measured in `facts` ("clocks" of the epoch, "clocks_per_micro_batch").
"""


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
    lab: LabKind,
    prepared: Prepared,
    *,
    drop: float = 0.0,
    timeout: float = 120.0,
    on_progress: OnProgress | None = None,
) -> Runner:
    """The runner for these choices.

    Raises:
        GlmError: they do not go together, or the hardware is not there.
    """
    if not 0 <= drop < 1:
        raise GlmError(f"a share of {drop} of the frames", "give at least 0 and below 1")
    if worker == WorkerKind.RTL:
        return _rtl_runner(prepared, on_progress)
    if lab == LabKind.LOCAL:
        if drop:
            raise GlmError("no frames are lost in one process", "take --lab shm or --lab mininet")
        return LocalRunner()
    return NetworkRunner(lab, loss=drop, timeout=timeout, on_progress=on_progress)


def _rtl_runner(prepared: Prepared, on_progress: OnProgress | None) -> Runner:
    if prepared.training.micro_batch != BANKS:
        raise GlmError(f"micro-batches of {prepared.training.micro_batch} samples", f"the hardware has {BANKS} banks")
    try:
        module = importlib.import_module(RTL_RUNNER)
    except ModuleNotFoundError as error:
        if error.name != RTL_RUNNER:
            raise
        raise GlmError("there are no workers in hardware here", "take --worker software") from None
    runner: Runner = module.RtlRunner(on_progress=on_progress)
    return runner
