"""Rounds of a job on a machine, checked against numpy bit for bit: gradients to the root, parameters from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.controlplane.jobs import JobPlan
from catchment.sim.cosim.errors import CosimError
from catchment.sim.cosim.machine import Machine
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

Values = NDArray[Any]
ELEMENTS: dict[DataType, np.dtype[Any]] = {
    DataType.FP32: np.dtype(np.float32), DataType.FP16: np.dtype(np.float16), DataType.BF16: np.dtype(np.uint16),
    DataType.INT32: np.dtype(np.int32),
}  # fmt: skip
"""How numpy holds each type; bf16 as words."""


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """A round on the machine's clock, in ns.

    Attributes:
        began: when the doorbells rang.
        received: when the last byte, and the record behind it, were in the receivers' memory.
        sent: when the last sender's record was.
    """

    began: float
    received: float
    sent: float

    @property
    def latency(self) -> float:
        """The time from push to the last byte in the receivers' memory."""
        return self.received - self.began


def as_type(values: NDArray[np.float32], dtype: DataType) -> Values:
    """Real numbers as elements of `dtype`."""
    if dtype == DataType.BF16:
        return formats.bf16_words(values)
    return values.astype(ELEMENTS[dtype])


def summed(parts: Sequence[Values], dtype: DataType, exponent: int, pulled: DataType) -> Values:
    """What the root must get."""
    lanes = [formats.quantize(part, dtype, exponent, len(parts)).lanes for part in parts]
    return formats.dequantize(formats.add_lanes(lanes), pulled, exponent, len(parts))


def gradients(
    machine: Machine,
    job: JobPlan,
    parts: Sequence[Values],
    dtype: DataType,
    *,
    exponent: int = 0,
    pulled: DataType | None = None,
) -> tuple[Values, RoundTimes]:
    """Push one array per worker at the same time, pull their sum at the root.

    Raises:
        CosimError: the sum differs from numpy's in a bit, or does not arrive.
        NicError: a request failed.
    """
    pulled = pulled or dtype
    expected = summed(parts, dtype, exponent, pulled)
    root = machine[_root(job)]
    with machine.together():
        pulls = [root.pull(expected.nbytes, pulled)]
        pushes = [machine[w].push(part, dtype, exponent) for w, part in zip(job.workers, parts, strict=True)]
    times = _finish(machine, pushes, pulls, {job.root or "": expected.tobytes()})
    return expected, times


def parameters(machine: Machine, job: JobPlan, values: bytes) -> RoundTimes:
    """Push bytes at the root, pull them at every worker.

    Raises:
        CosimError: a worker got other bytes, or none.
        NicError: a request failed.
    """
    with machine.together():
        pulls = [machine[w].pull(len(values), DataType.BYTES) for w in job.workers]
        pushes = [machine[_root(job)].push(values, DataType.BYTES)]
    return _finish(machine, pushes, pulls, dict.fromkeys(job.workers, values))


def _finish(machine: Machine, pushes: list[Any], pulls: list[Any], expected: dict[str, bytes]) -> RoundTimes:
    began = machine.now_ns
    machine.finish([*pulls, *pushes])
    for push in pushes:
        push.check()
    for pull in pulls:
        _compare(pull.host.name, pull.check(), expected[pull.host.name])
    times = RoundTimes(began, max(p.finished_ns for p in pulls), max(p.finished_ns for p in pushes))
    for transfer in (*pushes, *pulls):
        transfer.release()
    return times


def _compare(host: str, got: bytes, expected: bytes) -> None:
    if got == expected:
        return
    differing = np.flatnonzero(np.frombuffer(got, np.uint8) != np.frombuffer(expected, np.uint8))
    raise CosimError(
        f"{host} got other bytes than numpy has: {differing.size} of {len(expected)} differ, first {differing[0]}"
    )


def _root(job: JobPlan) -> str:
    if job.root is None:
        raise CosimError(f"job {job.name} has no root")
    return job.root
